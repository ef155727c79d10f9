"""Real conversions between formats, run where hostile input can do no harm."""
