package rnic

import (
	"fmt"
	"net/netip"
	"syscall"

	"github.com/rdmashim/rdmashim/kshim/abi"
	"github.com/rdmashim/rdmashim/kshim/driver"
)

// maxAH is how many address handles there may be (rxe_param.h: RXE_MAX_AH).
const maxAH = 1<<15 - 1

// addressVector is an address handle: the destination of datagrams that name
// it. Its number is what a send work request carries (ah_num); 0 is none, as
// with rxe.
type addressVector struct {
	d    *Device
	num  uint32
	pd   *domain
	peer netip.AddrPort
}

// CreateAH implements driver.Device. A client that has no room for the number
// gets none, and cannot use the handle: so it was before rxe had numbers.
func (d *Device) CreateAH(pd driver.PD, a *abi.AHAttr, u *driver.Udata) (driver.AH, error) {
	p, err := d.domainOf(pd)
	if err != nil {
		return nil, err
	}
	dest := a.QPDest()
	peer, err := d.peer(&dest)
	if err == nil {
		err = d.reach(peer.Addr())
	}
	if err != nil {
		return nil, fmt.Errorf("rnic: address handle: %w", err)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.check(); err != nil {
		return nil, err
	}
	v := &addressVector{d: d, pd: p, peer: peer}
	if err := d.ahs.add(v); err != nil {
		return nil, fmt.Errorf("rnic: device %s: %w", d.name, err)
	}
	if len(u.Out) >= abi.RXECreateAHRespSize {
		(&abi.RXECreateAHResp{AHNum: v.num}).Put(u.Out)
	}
	return v, nil
}

// Destroy implements driver.AH.
func (v *addressVector) Destroy() error {
	v.d.mu.Lock()
	defer v.d.mu.Unlock()
	v.d.ahs.remove(v)
	return nil
}

// addressTable is a device's address handles by number.
type addressTable struct {
	vectors map[uint32]*addressVector
	last    uint32
}

// add gives a handle the next free number, 1 … maxAH: a number rests as long as
// it can before it is used again.
func (t *addressTable) add(v *addressVector) error {
	if len(t.vectors) >= maxAH {
		return fmt.Errorf("all %d address handles are in use: %w", maxAH, syscall.ENOMEM)
	}
	if t.vectors == nil {
		t.vectors = map[uint32]*addressVector{}
	}
	for {
		t.last = t.last%maxAH + 1
		if t.vectors[t.last] == nil {
			v.num = t.last
			t.vectors[v.num] = v
			return nil
		}
	}
}

func (t *addressTable) remove(v *addressVector) { delete(t.vectors, v.num) }

// find is the handle of a number, for a queue pair of a domain; nil if there is
// none (rxe_av.c:rxe_get_av).
func (t *addressTable) find(num uint32, pd *domain) *addressVector {
	if v := t.vectors[num]; v != nil && v.pd == pd {
		return v
	}
	return nil
}
