// Package driver defines the seam between the emulated RDMA core (kshim/emu)
// and the devices that it drives: the calls of the core to a device, and the
// events that a device raises. A driver imports this package and not the core;
// a module of the core (emu.Module) registers its devices.
package driver
