// Package driver defines the seam between the emulated RDMA core (kshim/emu)
// and the devices that it drives: the calls of the core to a device, and the
// events that a device raises. A driver imports this package and not the core;
// a module of the core (emu.Module) registers its devices.
//
// It holds interfaces and their structures and no behaviour, and knows nothing
// of commands, handles and files, which are the core's.
//
// A call flows down: the core resolves the handles of a command and calls the
// object that the device made for each (Device, QP, CQ, MR …); the device
// answers in a Udata. An event flows up: the device calls the CQEvents and
// QPEvents that it was given with the object. Work requests and completions
// pass by neither: they lie in rings that device and client share, and Doorbell
// has the device look.
package driver
