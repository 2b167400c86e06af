"""Every promise of reliability, tested by making things fail: memory, disks, power, processes."""
