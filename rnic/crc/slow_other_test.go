//go:build !amd64

package crc

import "testing"

func slow(*testing.T) {}
