"""Every guarantee of reliability, tested while memory, disks, power or processes fail."""
