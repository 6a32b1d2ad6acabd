// Package diskload reads, writes and verifies disks, as fast as they answer and
// with as many commands outstanding as a caller asks for: the load of 'rdmashim
// sample nvme host', of the laboratory's rows, and of tests whose disk is a
// kernel's block device.
//
// A Load cuts a disk into pieces of several sizes, which its workers take in an
// order that jumps about. What Write writes depends on seed and place alone, so
// that Check needs no copy of it, reads it in other pieces, and knows a block
// that was written elsewhere from its own.
//
// It is no benchmark of disks: it has one mix of sizes, and draws no places but
// those of Random.
package diskload
