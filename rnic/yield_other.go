//go:build !linux

package rnic

import "runtime"

func yield() { runtime.Gosched() }
