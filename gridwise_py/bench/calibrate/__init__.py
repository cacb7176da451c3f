"""Whether a device's clock and timestamps can be trusted, and the speed of the device."""
