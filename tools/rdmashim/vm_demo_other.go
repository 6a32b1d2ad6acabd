//go:build !linux

package main

import (
	"errors"
	"io"
)

// unloadModule works in the guests, too.
func unloadModule(string) error { return errors.ErrUnsupported }

// captureNetdev works in the guests, which are Linux.
func captureNetdev(string, io.Writer) (stop func() error, err error) {
	return nil, errors.ErrUnsupported
}
