package nvme

import (
	"context"

	"github.com/rdmashim/rdmashim/tools/internal/peer"
	"github.com/rdmashim/rdmashim/uapi"
)

// pair is what the queues of both sides are: a queue pair, and memory in slots,
// one for each command.
type pair struct{ peer.Endpoint }

// A slot's memory: capsule, response (of a host), data.
const (
	slotResponse = slotData - 64
	slotData     = 12 << 10
	slotSize     = slotData + dataSize
)

// Kinds of work requests. A request's id is its kind and its slot.
const (
	kindRecv   = iota
	kindFetch  // of the target: the host's data
	kindSend   // command or response
	kindRevoke // of the host: a window's key
	kindSilent // completes only when it fails
)

func workID(kind, slot int) uapi.WRID { return uapi.WRID(kind<<32 | slot) }

// piece is a part of a slot's memory.
func (p *pair) piece(s, off, n int) []uapi.SGE {
	return []uapi.SGE{{MR: p.Memory[0].MR, Offset: uint64(s*slotSize + off), Length: uint64(n)}}
}

// receive is a receive of n bytes at off of a slot.
func (p *pair) receive(s, off, n int) uapi.WR {
	return uapi.WR{ID: workID(kindRecv, s), Op: uapi.OpRecv, SGE: p.piece(s, off, n)}
}

func (p *pair) post(wrs ...uapi.WR) error {
	_, err := p.RDMA.Post(p.QP, wrs)
	return err
}

// completions has take handle each completion, by the kind and the slot of its
// request, until one has failed or the queue pair has ended.
func (p *pair) completions(ctx context.Context, take func(kind, s int, wc *uapi.WC) error) error {
	wcs := make([]uapi.WC, 32)
	for {
		n, err := p.RDMA.WaitCQ(ctx, p.QP, wcs)
		for i := 0; i < n && err == nil; i++ {
			if err = wcs[i].Err(); err == nil {
				err = take(int(wcs[i].WRID>>32), int(wcs[i].WRID&0xffffffff), &wcs[i])
			}
		}
		if err != nil {
			return err
		}
	}
}
