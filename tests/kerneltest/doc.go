// Package kerneltest puts a test on both sides of the mini kernel. Device is a
// driver without a network, whose queues hold real rings and whose steps a test
// takes; CMWire connects such devices' communication managers. Kernel stands
// between a client and its kernel, whose answers it records, refuses and
// spoils.
//
// The mini kernel's own tests use the devices, those of its clients both.
package kerneltest
