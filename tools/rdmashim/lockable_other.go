//go:build !linux

package main

import "math"

// machineMemory is not asked for.
func machineMemory() int64 { return unknownMemory }

// lockable has no limit where there are no devices of the kernel.
func lockable() int64 { return math.MaxInt64 }
