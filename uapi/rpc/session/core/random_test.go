package core

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"reflect"
	"testing"

	"github.com/rdmashim/rdmashim/tests/amount"
)

var seed = flag.Uint64("session.seed", 0, "run this seed of the random test only, and print each step with -v")

const seedsEverywhere = 10_000

// block is memory for bodies.
var block = make([]byte, 5000)

// randomWorld is a world with more of everything, in a random order: calls and
// streams with messages, offers, cancels, breaks, late messages of old
// connections, lives that end, servers that restart, replies beyond what is
// kept.
type randomWorld struct {
	*world
	*rand.Rand
	reached tally
	chatty  bool // callers of streams send before all else
}

// tally counts what the seeds have reached.
type tally struct {
	Steps, Answers, Unknown, Broken, Left, Resumed, Restarts, Expired        int
	Repeats, Voids, Replays, Attaches, Tombstones, Dropped, Messages, NoRoom int
}

func newRandomWorld(seed uint64) *randomWorld {
	r := &randomWorld{Rand: rand.New(rand.NewPCG(seed, 0))}
	b := bounds{Epochs: 1 + r.IntN(8), Slots: 1 + r.IntN(4), Offer: r.IntN(2) == 0, Loses: true, Mixed: true}
	r.world = newWorld(b, 1+r.IntN(12))
	if b.Offer {
		r.Slabs = [2][]int{make([]int, 1+r.IntN(4)), make([]int, 64)}
	}
	r.chatty = r.IntN(4) == 0
	r.restart()
	return r
}

// restart begins with another server; the handlers of the last one are gone.
func (r *randomWorld) restart() {
	if r.Server != nil && r.Session != nil {
		s := r.Server
		r.reached.Replays += int(s.Replays)
		r.reached.Attaches += int(s.Attaches)
		r.reached.Tombstones += int(s.Tombstones)
		r.reached.Resumed += int(s.Resumed)
		r.reached.Dropped += int(s.Dropped)
	}
	r.Server = NewServer(ServerConfig{Instance: r.Uint64(), Slots: r.Slots, SessionKept: 1 + r.Int64N(8000), Kept: 1 + r.Int64N(8000)})
	r.Session = nil
	for i := range r.Conns {
		r.Conns[i].Broken, r.Conns[i].Stood, r.Conns[i].To = true, true, nil
	}
	for k := range r.Calls {
		r.Calls[k].Ended = r.Calls[k].Ended || r.Calls[k].Ran > 0
	}
	clear(r.Running)
	clear(r.Slabs[1])
	r.Reads = nil
}

// more lists the actions here beside the world's.
func (r *randomWorld) more() (out []action) {
	add := func(outside bool, label string, do func(*world) string) {
		out = append(out, action{outside, label, do})
	}
	add(true, "time passes", func(w *world) string {
		w.Now += Time(r.IntN(100)) * second
		n := w.Server.Sessions()
		w.Server.Expire(w.Now, w.end)
		r.reached.Expired += n - w.Server.Sessions()
		return ""
	})
	if len(r.Conns) > 0 && int(r.Client.epoch) < r.Epochs && r.Phase != dialling {
		add(true, "the server restarts", func(w *world) string {
			r.reached.Restarts++
			r.restart()
			return ""
		})
	}
	for k, c := range r.Calls {
		if c.State == has && r.stream(k+1) && c.Unread[0] > 0 {
			add(false, fmt.Sprintf("%d reads", k+1), func(w *world) string {
				w.Calls[k].Unread[0]--
				w.Client.Consumed(uint16(c.Slot), len(block))
				return ""
			})
		}
		if c.State == has && r.stream(k+1) && c.Out[0] < 40 {
			add(!r.chatty, fmt.Sprintf("%d sends", k+1), func(w *world) string { return r.send(k + 1) })
		}
	}
	for slot, k := range r.Running {
		if k == 0 || !r.stream(k) {
			continue
		}
		if r.Calls[k-1].Unread[1] > 0 {
			add(false, fmt.Sprintf("the handler of %d reads", k), func(w *world) string {
				w.Calls[k-1].Unread[1]--
				w.Session.Consumed(uint16(slot), len(block))
				return ""
			})
		}
		if r.Calls[k-1].Out[1] < 40 {
			add(true, fmt.Sprintf("the handler of %d sends", k), func(w *world) string { return r.reply(uint16(slot), k) })
		}
	}
	return out
}

// send sends a message of the stream k from its caller.
func (r *randomWorld) send(k int) (problem string) {
	c := &r.Calls[k-1]
	n, slab := len(block), Slab(0)
	if r.offers(k) && r.IntN(2) == 0 {
		if slab = r.slab(0, k); slab == 0 {
			return ""
		}
		n = 1
	}
	m, ok, err := r.Client.Data(uint16(c.Slot), n, slab, 1)
	if err != nil || !ok {
		if slab != 0 {
			r.Slabs[0][slab-1] = 0
		}
		if err != nil {
			c.Out[0] = 40 // nothing more can be sent
		} else {
			r.reached.NoRoom++
		}
		return ""
	}
	m.Body = block[:n-1] // a byte of metadata names the call
	c.Out[0]++
	r.reached.Messages++
	r.toServer(m, k)
	return ""
}

// reply sends a message of the stream k from its handler.
func (r *randomWorld) reply(slot uint16, k int) (problem string) {
	n, slab := len(block), Slab(0)
	if r.offers(k) && r.IntN(2) == 0 {
		if slab = r.slab(1, k); slab == 0 {
			return ""
		}
		n = 0
	}
	m, ok, err := r.Session.Data(slot, n, slab, 1)
	if err != nil || !ok {
		if slab != 0 {
			r.Slabs[1][slab-1] = 0
		}
		return ""
	}
	r.Calls[k-1].Out[1]++
	m.Body = block[:n]
	r.toClient(m)
	return ""
}

func (r *randomWorld) run(log func(string)) (problem string) {
	for range 20_000 {
		var inside []action
		all := append(r.actions(), r.more()...)
		for _, a := range all {
			if !a.outside {
				inside = append(inside, a)
			}
		}
		if len(inside) == 0 {
			return r.check()
		}
		choice := inside
		if r.IntN(4) == 0 {
			choice = all
		}
		a := choice[r.IntN(len(choice))]
		log(a.label)
		r.reached.Steps++
		if problem := r.perform(a); problem != "" {
			return a.label + ": " + problem
		}
		if problem := r.bounded(); problem != "" {
			return a.label + ": " + problem
		}
	}
	return "it goes on for ever"
}

// bounded holds that the accounts of kept replies agree, within the bounds.
func (r *randomWorld) bounded() string {
	s := r.Server
	sum := int64(0)
	for _, x := range s.sessions {
		mine := int64(0)
		for i := range x.slots {
			mine += x.slots[i].kept
		}
		if mine != x.kept || x.kept > s.config.SessionKept {
			return fmt.Sprintf("a session keeps %d bytes, counts %d, and may keep %d", mine, x.kept, s.config.SessionKept)
		}
		sum += mine
	}
	if sum != s.kept || sum > s.config.Kept {
		return fmt.Sprintf("the server keeps %d bytes, counts %d, and may keep %d", sum, s.kept, s.config.Kept)
	}
	return ""
}

// check is the oracle's look at the end.
func (r *randomWorld) check() string {
	for _, c := range r.Calls {
		switch c.State {
		case answeredOK:
			r.reached.Answers++
		case unknown:
			r.reached.Unknown++
		case broke:
			r.reached.Broken++
		case left:
			r.reached.Left++
		}
	}
	r.reached.Repeats += int(r.Client.Repeats)
	r.reached.Voids += int(r.Client.Voids)
	r.reached.Dropped += int(r.Client.Dropped)
	r.restart()
	return r.Stuck()
}

func (a *tally) add(b *tally) {
	to, from := reflect.ValueOf(a).Elem(), reflect.ValueOf(b).Elem()
	for i := range to.NumField() {
		to.Field(i).SetInt(to.Field(i).Int() + from.Field(i).Int())
	}
}

// TestRandom holds that in any order of events each call is executed at most
// once, each result is its call's own, every call ends, no slot or slab leaks,
// streams deliver all that was sent before their end, and kept replies stay
// within their bounds.
func TestRandom(t *testing.T) {
	n := *seeds
	if n == 0 {
		n = amount.Of(seedsEverywhere/5, seedsEverywhere)
	}
	if testing.Short() {
		n = min(n, seedsEverywhere/20)
	}
	from := uint64(1)
	if *seed != 0 {
		from, n = *seed, 1
	}
	var sum tally
	for i := range uint64(n) {
		r := newRandomWorld(from + i)
		log := func(string) {}
		if *seed != 0 {
			log = func(label string) { t.Log(label) }
		}
		if problem := r.run(log); problem != "" {
			t.Fatalf("seed %d: %s\n\treplay: go test ./uapi/rpc/session/core -run TestRandom -v -session.seed=%d", from+i, problem, from+i)
		}
		sum.add(&r.reached)
	}
	t.Logf("%+v", sum)
	if n >= seedsEverywhere {
		for field, n := range reflect.ValueOf(sum).Fields() {
			if n.IsZero() {
				t.Errorf("no seed reached %s", field.Name)
			}
		}
	}
}
