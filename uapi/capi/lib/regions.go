//go:build linux && cgo

package main

// #include "rdma.h"
import "C"

import (
	"fmt"
	"math"
	"sync"
	"syscall"

	"github.com/rdmashim/rdmashim/uapi"
)

// regions numbers the device's memory regions for C, whose int is narrower than
// uapi's handles. Numbers count up from 1: one comes again after all others.
var regions struct {
	mu   sync.RWMutex
	last C.int             // guarded by mu
	live map[C.int]uapi.MR // guarded by mu
}

// enterRegion gives a region its number.
func enterRegion(mr uapi.MR) int {
	regions.mu.Lock()
	defer regions.mu.Unlock()
	if regions.live == nil {
		regions.live = map[C.int]uapi.MR{}
	}
	for {
		regions.last = regions.last%math.MaxInt32 + 1
		if _, taken := regions.live[regions.last]; !taken {
			regions.live[regions.last] = mr
			return int(regions.last)
		}
	}
}

// region is the region of a number, or EBADF.
func region(number C.int) (uapi.MR, error) {
	regions.mu.RLock()
	defer regions.mu.RUnlock()
	mr, ok := regions.live[number]
	if !ok {
		return 0, fmt.Errorf("rdma mr %d: it is no memory region, or not any more: %w", int(number), syscall.EBADF)
	}
	return mr, nil
}

func leaveRegion(number C.int) {
	regions.mu.Lock()
	defer regions.mu.Unlock()
	delete(regions.live, number)
}

// leaveRegions forgets all regions, whose device is closed.
func leaveRegions() {
	regions.mu.Lock()
	defer regions.mu.Unlock()
	clear(regions.live)
}
