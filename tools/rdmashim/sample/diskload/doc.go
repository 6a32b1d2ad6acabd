// Package diskload reads, writes and verifies disks, as fast as they answer and
// with as many commands outstanding as a caller asks for: the load of 'rdmashim
// sample nvme host', of the laboratory's rows, and of tests whose disk is a
// kernel's block device.
//
// A Load cuts a disk into pieces of several sizes, and its workers take them
// out of order. The bytes that Write writes depend on seed and place alone:
// Check needs no copy of them, reads them in other pieces, and finds a block
// that was written to another place.
//
// It is no benchmark of disks: it has one mix of sizes, and draws no places but
// those of Random.
package diskload
