"""What a device's clock and timestamps are worth, and what the device can do."""
