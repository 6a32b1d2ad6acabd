package crc

import "golang.org/x/sys/cpu"

// Fast says that Update and Copy fold, so that Copy costs hardly more than a
// copy.
var Fast = cpu.X86.HasAVX2 && cpu.X86.HasPCLMULQDQ && multipliesWide()

// multipliesWide reports VPCLMULQDQ (CPUID 7.0, ECX bit 10), also of processors
// without AVX-512, of which x/sys tells nothing. A processor with AVX2 has that
// leaf.
func multipliesWide() bool

// fold moves the register r over n bytes, a multiple of block, and returns what
// has the same remainder.
//
//go:noescape
func fold(p *byte, n int, r uint32) (lo, hi uint64)

// foldCopy is fold from the register 0, and copies.
//
//go:noescape
func foldCopy(dst, src *byte, n int) (lo, hi uint64)

// clmul multiplies two polynomials without reducing the product.
func clmul(a, b uint32) uint64
