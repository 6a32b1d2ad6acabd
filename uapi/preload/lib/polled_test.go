//go:build linux && cgo

package main

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/kshim"
)

// counted is an open device file that counts how often it is driven.
type counted struct {
	kshim.Driven
	times int
}

func (c *counted) Progress() bool { c.times++; return false }

// TestPolled: of the open files of a device one drives it, whichever are open.
func TestPolled(t *testing.T) {
	files := [3]*counted{{}, {}, {}}
	paths := [3]string{"uverbs0", "uverbs0", "uverbs1"}
	open := func(i int) {
		poll(func(list []openDevice) []openDevice { return append(list, openDevice{files[i], paths[i]}) })
	}
	driven := func() (times [3]int) {
		rdmashimProgress()
		for i, f := range files {
			times[i], f.times = f.times, 0
		}
		return times
	}
	require.Equal(t, [3]int{}, driven())
	for i := range files {
		open(i)
	}
	require.Equal(t, [3]int{0, 1, 1}, driven())
	forget(files[1])
	require.Equal(t, [3]int{1, 0, 1}, driven())
	forget(files[0])
	require.Equal(t, [3]int{0, 0, 1}, driven())
	forget(files[2])
	require.Equal(t, [3]int{}, driven())
}
