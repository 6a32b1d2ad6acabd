// Package gidtable reads a port's GID table from sysfs, and ranks its entries
// by which one a peer most likely reaches. It knows files by functions that
// read them: the kernel's client, the lister of devices and netlinkmgr each
// have their own.
package gidtable
