//go:build linux

package notif

var oldPaths []uint32
