// Package crc computes Ethernet's CRC-32, which RoCEv2 packets end with, as
// quickly as the processor can: with wide carry-less multiplication, and while
// it copies.
//
// It is no second hash/crc32: [Update] gives what crc32.Update gives for
// crc32.IEEETable, and leaves short inputs and other processors to it. It adds
// the copy that sums on its way ([Copy], [Join]) and arithmetic with registers
// ([Mul], [Table]).
//
// # How a sum is made
//
// A register is a polynomial over GF(2) of degree below 32, kept reflected: bit
// 31 is the coefficient of x^0. A CRC is the register's complement, as in
// hash/crc32.
//
// Bytes are folded (Gopal et al., Fast CRC Computation for Generic Polynomials
// Using PCLMULQDQ, Intel 2009): eight accumulators of 32 bytes each take the
// place of 256 bytes, and are moved over the next 256 by multiplying them with
// x^2048. Few accumulators wait for each product; eight keep the multiplier
// busy. The rest, 16 bytes with the same remainder, goes through tables.
//
// The sum of bytes that are copied is a register that begins with 0, since the
// bytes before them are not known then: the headers come later, and the IPv4
// identification last. Join moves the register over the headers across as many
// bytes and adds the sum. That is right because the CRC is linear.
package crc
