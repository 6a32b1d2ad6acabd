// Package device gives package uapi its devices: soft RNICs of this process,
// and those of the kernel. A device gets from its name to package uapi's Device
// in four steps, each with a file:
//
//  1. name.go, option.go: Parse makes a Spec of a name.
//  2. choose.go: a Chooser makes Specs of an address, or of the way to one. What
//     it looks at is in list.go (interfaces and the kernel's devices), taken.go
//     (UDP sockets) and gid.go (address tables).
//  3. open.go: Open finds the device of a Spec in the registry (registry.go),
//     starts it if it is not there (softdevice.go, on the emulated kernel of
//     minikernel.go), and opens its kernel. The Client is given back by Close,
//     and the last one stops the device.
//  4. share.go: a soft device whose UDP port another process has on its address
//     is opened beside that one's (beside_linux.go, portmapper_linux.go).
//
// It knows kernels, sockets, shared memory and /proc, and none of the objects
// of the API: devices, queue pairs and regions are uapi's. A Chooser opens
// what its caller opens on a device, whatever that is.
package device
