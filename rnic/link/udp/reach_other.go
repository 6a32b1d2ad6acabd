//go:build !linux

package udp

import (
	"net/netip"
	"time"
)

// Reach implements link.Link: nothing is known of routes on this system.
func (s *socket) Reach(netip.Addr, time.Duration) error { return nil }
