// Package minikernel gives a program the emulated kernel of its process: to
// load modules, to install one of the program's own, to look at a device as
// another process would. It is not needed to use a device, and no part of what
// v1 promises: its Machine is that of package emu, and changes with it.
//
// uapi.Open loads the modules soft and sim of the machine and adds a device to
// one of them, "soft0"; the last Close of the device takes it away again.
package minikernel
