//go:build !linux || udpportable

package udp

import "github.com/rdmashim/rdmashim/rnic/link"

// errorQueue: such a socket does not learn of its packets' fate.
type errorQueue struct{ report func(link.Undelivered) }

func (*errorQueue) init(*socket) {}
