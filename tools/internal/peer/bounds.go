package peer

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"net/netip"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/rdmashim/rdmashim/kshim/parties"
	"github.com/rdmashim/rdmashim/tools/internal/cli"
	"github.com/rdmashim/rdmashim/uapi"
)

// limits bound the resources that the clients of a server take.
type limits struct {
	maxBytes int64         // memory of one client
	maxTotal int64         // and of all together; 0 until complete
	idle     time.Duration // 0: for ever
}

func (l *limits) add(cmd *cobra.Command) {
	f := cmd.Flags()
	cli.BytesVar(f, &l.maxBytes, "max-bytes", "", 4<<30, "most memory that one client may ask for")
	cli.BytesVar(f, &l.maxTotal, "max-total", "", 0, "most memory of all clients together (default: a quarter of this machine's)")
	f.DurationVar(&l.idle, "idle", time.Minute, "end a client from which nothing has come by RDMA for so long; 0: never")
}

// complete checks the limits. A server for one client has no others to keep
// memory for, so that --max-bytes is its bound.
func (l *limits) complete(once bool) error {
	switch {
	case l.maxBytes < 0:
		return cli.Usagef("--max-bytes %d: memory is not negative", l.maxBytes)
	case l.maxTotal < 0:
		return cli.Usagef("--max-total %d: memory is not negative", l.maxTotal)
	case l.idle < 0:
		return cli.Usagef("--idle %v: a time is not negative", l.idle)
	case l.maxTotal > 0:
	case once:
		l.maxTotal = math.MaxInt64
	default:
		l.maxTotal = machineMemory() / 4
	}
	return nil
}

// unknownMemory is the assumed memory of a machine that does not tell, in
// bytes.
const unknownMemory = 8 << 30

// budget is the memory that clients may have together, in bytes.
type budget struct {
	total int64

	mu    sync.Mutex
	taken int64 // guarded by mu
}

// take reserves memory for a client, until give.
func (b *budget) take(n int64) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if left := b.total - b.taken; n > left {
		return fmt.Errorf("the client wants %d bytes of memory, and of %d for all clients %d are left (--max-total)", n, b.total, left)
	}
	b.taken += n
	return nil
}

func (b *budget) give(n int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.taken -= n
}

// Seats bound how many clients a server has at a time, and how many of them
// from one address: half, if Share is 0.
type Seats struct {
	Most, Share int

	mu    sync.Mutex
	taken map[netip.Prefix]int // guarded by mu
	all   int                  // guarded by mu
}

// AddFlag adds --max-clients and --max-per-address.
func (s *Seats) AddFlag(cmd *cobra.Command) {
	cmd.Flags().IntVar(&s.Most, "max-clients", 256, "most clients at a time; others are refused")
	cmd.Flags().IntVar(&s.Share, "max-per-address", 0, "most clients of one address (IPv6: of a /64) at a time (default: half of --max-clients)")
}

// Check is a usage error of the flags.
func (s *Seats) Check() error {
	switch {
	case s.Most < 1:
		return cli.Usagef("--max-clients %d: a server serves at least one", s.Most)
	case s.Share < 0:
		return cli.Usagef("--max-per-address %d: a server serves at least one", s.Share)
	}
	return nil
}

// ErrNoSeat is why a client is refused.
var (
	ErrNoSeat = errors.New("the server has as many clients as it serves at a time (--max-clients)")
	errShare  = fmt.Errorf("%w, of that address (--max-per-address)", ErrNoSeat)
)

// Take takes a seat for a client from HOST:PORT, until Give, or is ErrNoSeat.
func (s *Seats) Take(from fmt.Stringer) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	err := s.left(from)
	if err == nil {
		if s.taken == nil {
			s.taken = map[netip.Prefix]int{}
		}
		s.taken[party(from)]++
		s.all++
	}
	return err
}

// Give gives a client's seat back.
func (s *Seats) Give(from fmt.Stringer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	p := party(from)
	if s.taken[p]--; s.taken[p] == 0 {
		delete(s.taken, p)
	}
	s.all--
}

// Left is nil while there are seats for a client, and ErrNoSeat then.
func (s *Seats) Left(from fmt.Stringer) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.left(from)
}

func (s *Seats) left(from fmt.Stringer) error {
	p := party(from)
	switch {
	case s.all >= s.Most:
		return ErrNoSeat
	case p.IsValid() && s.taken[p] >= cmp.Or(s.Share, (s.Most+1)/2): // those of a UNIX socket have no address
		return errShare
	}
	return nil
}

func party(from fmt.Stringer) netip.Prefix {
	at, _ := netip.ParseAddrPort(from.String())
	return parties.Of(at.Addr())
}

// errIdle is why a session ends whose client keeps quiet.
var errIdle = errors.New("the client has been idle (--idle)")

// endIdle returns at once, and cancels a session, with errIdle, when arrived
// has returned the same for the limit. arrived changes with each message from
// the client. A timer looks: a goroutine would cost each session a stack.
func endIdle(ctx context.Context, cancel context.CancelCauseFunc, limit time.Duration, arrived func() uint64) {
	const looks = 4 // within the limit, which is kept to a quarter
	gap := max(limit/looks, time.Millisecond)
	last, same := arrived(), 0
	var tick *time.Timer
	tick = time.AfterFunc(math.MaxInt64, func() {
		if now := arrived(); now == last {
			same++
		} else {
			last, same = now, 0
		}
		switch {
		case same == looks:
			cancel(fmt.Errorf("%w: nothing came for %v", errIdle, limit))
		case ctx.Err() == nil:
			tick.Reset(gap)
		}
	})
	tick.Reset(gap)
	context.AfterFunc(ctx, func() { tick.Stop() })
}

// arrivedOn returns a number that changes with every request that comes to the
// queue pairs: the sum of the packet sequence numbers that they expect.
func arrivedOn(rdma *uapi.Device, qps ...uapi.QP) func() uint64 {
	own := make(map[uint32]bool, len(qps))
	for _, qp := range qps {
		own[uint32(qp)] = true
	}
	return func() (sum uint64) {
		d, _ := rdma.Stats() // nothing of a device that is being closed
		for _, q := range d.QueuePairs {
			if own[q.QPN] {
				sum += uint64(q.RQPSN)
			}
		}
		return sum
	}
}
