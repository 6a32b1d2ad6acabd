package msgring

import (
	"errors"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/rdmashim/rdmashim/uapi"
)

// kit holds the objects of a connection that its peer does not know: when a
// connection is given back, the next one on the device takes them. The ring,
// which the peer writes, and its key are never used again, nor is the queue
// pair.
type kit struct {
	pd      uapi.PD
	cq      uapi.CQ
	entries int // of cq
	// local is staging, then room for one control message to be sent, then a
	// slot for each receive.
	local region
}

const (
	// maxKits is how many kits a device keeps.
	maxKits = 8
	// maxUsed bounds the staging in bytes that is cleared for the next
	// connection; of one that has used more it is given back.
	maxUsed = 16 << 10
)

// kits are those that a device keeps as long as it has connections, and the
// goroutines that close them: one that is there is spared the growth of its
// stack.
type kits struct {
	mu      sync.Mutex
	conns   int          // guarded by mu: that have taken a kit and not left
	list    []kit        // guarded by mu, the latest last
	closing chan *Conn   // guarded by mu: to goroutines that have closed another
	idle    atomic.Int32 // of those
}

// take takes a kit that fits, or makes one. left must follow; after an error
// what was made is there, to be freed.
func (s *kits) take(device *uapi.Device, c *Config) (k kit, err error) {
	entries, local := c.entries(), c.Ring+slot*(1+c.receives())
	s.mu.Lock()
	if s.conns++; s.conns == 1 {
		s.closing = make(chan *Conn)
	}
	i := slices.IndexFunc(s.list, func(k kit) bool { return k.entries == entries && len(k.local.mem) == local })
	if i >= 0 {
		k = s.list[i]
		s.list = slices.Delete(s.list, i, i+1)
	}
	s.mu.Unlock()
	if i >= 0 {
		return k, nil
	}
	k.entries = entries
	if k.pd, err = device.CreatePD(); err != nil {
		return k, err
	}
	if k.cq, err = device.CreateCQ(entries); err != nil {
		return k, err
	}
	return k, k.local.make(device, k.pd, local, uapi.AccessLocalWrite)
}

// left tells that a connection has ended, and leaves its kit, or nil, to the
// next one, unless there are many. The last one gives all back.
func (s *kits) left(device *uapi.Device, k *kit) error {
	var spare []kit
	s.mu.Lock()
	s.conns--
	switch {
	case s.conns == 0:
		spare, s.list = s.list, nil
		close(s.closing)
		fallthrough
	case len(s.list) == maxKits:
		if k != nil {
			spare = append(spare, *k)
		}
	case k != nil:
		s.list = append(s.list, *k)
	}
	s.mu.Unlock()
	var all []error
	for i := range spare {
		all = append(all, spare[i].free(device))
	}
	return errors.Join(all...)
}

// end has a goroutine finish a connection, which has not left.
func (s *kits) end(c *Conn) {
	s.mu.Lock()
	closing := s.closing
	s.mu.Unlock()
	select {
	case closing <- c:
		return
	default:
	}
	go func() {
		for ok := true; ok; {
			c.finish()
			if s.idle.Add(1) > maxKits {
				s.idle.Add(-1)
				return
			}
			c, ok = <-closing
			s.idle.Add(-1)
		}
	}()
}

// reset makes a kit as good as new, unless that costs more: used bytes of
// staging, which Reserve lends, are cleared. Preconditions: no queue pair uses
// it.
func (k *kit) reset(device *uapi.Device, used uint64) bool {
	if used > maxUsed {
		return false
	}
	clear(k.local.mem[:used])
	// Completions of the queue pair that is gone make room, and are nobody's.
	var none [1]uapi.WC
	n, err := device.PollQueue(k.cq, none[:])
	return n == 0 && err == nil
}

// free gives a kit back. Preconditions: no queue pair uses it.
func (k *kit) free(device *uapi.Device) error {
	all := []error{k.local.free(device)}
	if k.cq > 0 {
		all = append(all, unlessClosed(device.DestroyCQ(k.cq)))
	}
	if k.pd > 0 {
		all = append(all, unlessClosed(device.DestroyPD(k.pd)))
	}
	return errors.Join(all...)
}
