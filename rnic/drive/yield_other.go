//go:build !linux

package drive

import "runtime"

func yield() { runtime.Gosched() }
