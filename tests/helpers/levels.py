"""Run-time checks of shaders: what a device makes of the level that a text asks for."""

from gridwise_py.backend.device_state import state_of


def level_on(device, asked):
    """Return the level that a text has on a device: one for all, where the environment or the engine says so."""
    return state_of(device).shader_checks or asked
