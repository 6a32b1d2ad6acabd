//go:build linux && cgo

package main

import (
	"fmt"
	"sync"
	"sync/atomic"
	"syscall"

	"github.com/rdmashim/rdmashim/uapi"
)

// device is what all calls are on.
var device struct {
	mu  sync.Mutex // serialises opening and closing
	ctx atomic.Pointer[uapi.Device]
}

// current returns the device, which it opens if there is none.
func current() (*uapi.Device, error) {
	if c := device.ctx.Load(); c != nil {
		return c, nil
	}
	device.mu.Lock()
	defer device.mu.Unlock()
	if c := device.ctx.Load(); c != nil {
		return c, nil
	}
	return openLocked("")
}

func open(name string) error {
	device.mu.Lock()
	defer device.mu.Unlock()
	if device.ctx.Load() != nil {
		return fmt.Errorf("rdma Open %s: a device is open; call rdma_open before all else, or rdma_close first: %w", name, syscall.EBUSY)
	}
	_, err := openLocked(name)
	return err
}

// openLocked opens the device. Preconditions: mu is held.
func openLocked(name string) (*uapi.Device, error) {
	c, err := uapi.Open(name, uapi.OpenConfig{})
	if err == nil {
		device.ctx.Store(c)
	}
	return c, err
}

// closeDevice closes the device, if one is open.
func closeDevice() error {
	device.mu.Lock()
	defer device.mu.Unlock()
	c := device.ctx.Swap(nil)
	if c == nil {
		return nil
	}
	leaveRegions()
	return c.Close()
}
