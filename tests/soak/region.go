package soak

import (
	"fmt"

	"github.com/rdmashim/rdmashim/kshim/abi"
	"github.com/rdmashim/rdmashim/rnic/engine"
	"github.com/rdmashim/rdmashim/rnic/mem"
	"github.com/rdmashim/rdmashim/tests/virtual"
)

// region is a registered part of an arena. Its address is not that of its
// memory: both are free to choose, and addresses of Go memory differ from run
// to run.
type region struct {
	span
	node    *virtual.Node
	arena   *arena
	iova    uint64
	access  abi.AccessFlags
	pd      mem.PD
	key     uint32
	handle  *mem.Region
	gone    bool
	invalid bool // gone because its key was invalidated, in order with the requests
	goneAt  engine.Time
}

// register makes a region known to its node.
func (r *region) register() error {
	reg, err := r.node.Regions.Register(r.pd, r.memory(), r.iova, r.access)
	if err != nil {
		return fmt.Errorf("register %d bytes on %s: %w", r.n, r.node.Name, err)
	}
	r.handle, r.key = reg, reg.Key()
	r.gone = false
	return nil
}

// memory is the region's part of the arena: half of all regions are far memory.
func (r *region) memory() mem.Memory {
	if r.iova>>32&1 == 0 {
		return mem.Near(r.arena.mem[r.at:r.end()])
	}
	return mem.Memory{Far: r.arena, Addr: farBase + uint64(r.at), Len: uint64(r.n)}
}

// deregister makes its key invalid.
func (r *region) deregister(now engine.Time) error {
	if err := r.node.Regions.Deregister(r.key); err != nil {
		return fmt.Errorf("deregister key %#x on %s: %w", r.key, r.node.Name, err)
	}
	r.gone, r.goneAt = true, now
	return nil
}

// dropped reports whether the program took the region away, whatever requests
// were under way.
func (r *region) dropped() bool { return r != nil && r.gone && !r.invalid }

// addr is the address of an offset of the arena.
func (r *region) addr(at int) uint64 { return r.iova + uint64(at-r.at) }

// list makes a scatter/gather list of spans of the arena.
func (r *region) list(spans []span) []mem.SGE {
	var l []mem.SGE
	for _, s := range spans {
		l = append(l, mem.SGE{Addr: r.addr(s.at), Length: uint32(s.n), LKey: r.key})
	}
	return l
}
