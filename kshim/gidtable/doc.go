// Package gidtable reads a port's GID table from sysfs, and ranks its entries:
// the one that peers most likely reach comes first. It opens no files itself:
// the caller gives a function that reads one, since the kernel's client, the
// lister of devices and netlinkmgr each have their own.
package gidtable
