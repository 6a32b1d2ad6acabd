// Package gidtable reads a port's GID table from sysfs, and ranks its entries:
// the one that peers most likely reach comes first. It opens no files itself:
// the caller gives a function that reads one, since the kernel's client, the
// lister of devices and netlinkmgr each have their own.
//
// Read goes through the table's directory and parses address, type and network
// device of each entry; the caller sorts what it got by Rank, and chooses.
package gidtable
