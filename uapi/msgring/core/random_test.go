package core

import (
	"flag"
	"math/rand/v2"
	"testing"
)

var (
	seeds = flag.Int("msgring.n", 0, "seeds of the random test; 0 is seedsEverywhere")
	seed  = flag.Uint64("msgring.seed", 0, "run this seed only")
)

const seedsEverywhere = 300

// TestRandom runs two ends with real sizes in a random order: lengths around
// the quantum and the longest chunk, rings that wrap, positions that pass 2^30
// quanta, both sides writing, half-close.
func TestRandom(t *testing.T) {
	n := *seeds
	if n == 0 {
		n = seedsEverywhere
	}
	if testing.Short() {
		n = min(n, seedsEverywhere/5)
	}
	from := uint64(1)
	if *seed != 0 {
		from, n = *seed, 1
	}
	for i := range uint64(n) {
		if problem := newRandomWorld(from + i).run(); problem != "" {
			t.Fatalf("seed %d: %s\n\treplay: go test ./uapi/msgring/core -run TestRandom -msgring.seed=%d", from+i, problem, from+i)
		}
	}
}

type randomWorld struct {
	*world
	*rand.Rand
	b bounds
}

func newRandomWorld(seed uint64) *randomWorld {
	r := &randomWorld{Rand: rand.New(rand.NewPCG(seed, 0))}
	ring := Layout{MinRing, 4 << r.IntN(9)} // 4096 … 16 quanta
	r.b = bounds{Config{Ring: ring, Longest: ring.Size / 4, Staging: Layout{ring.Size, 64}, Slots: uint64(Slots(uint32(ring.Size))), Controls: Controls}, MaxChunk}
	r.world = &world{Side: [2]*side{newSide(r.b), newSide(r.b)}, Fine: true, Late: true}
	whole := r.IntN(2) == 0
	base := [2]uint64{}
	for i, s := range r.Side {
		if r.IntN(2) == 0 {
			base[i] = ring.Quantum << ImmediateBits / ring.Size * ring.Size // soon past 2^30 quanta
			base[i] -= ring.Size * uint64(r.IntN(2))
		}
		s.Whole, s.Left, s.Closes, s.Reads = whole, r.Uint64N(3*ring.Size), true, true
		s.Length = r.length()
	}
	for i, s := range r.Side {
		s.End.out.next, s.End.out.freed = base[i], base[i]
		in := &r.Side[1-i].End.in
		in.next, in.consumed, in.credited = base[i], base[i], base[i]
	}
	return r
}

// length is that of a Write: short, around the quantum, around the longest
// chunk, or any.
func (r *randomWorld) length() uint64 {
	q, longest := r.b.config.Ring.Quantum, r.b.config.Ring.Size/4
	n := []uint64{1, q - 1, q, q + 1, longest - 1, longest, 1 + r.Uint64N(longest)}[r.IntN(7)]
	return min(n, longest)
}

func (r *randomWorld) run() (problem string) {
	for range 200_000 {
		var possible []func() string
		for i := range r.Side {
			for _, a := range r.actions(i) {
				possible = append(possible, r.action(i, a))
			}
		}
		if len(possible) == 0 {
			return r.unfinished()
		}
		if problem := possible[r.IntN(len(possible))](); problem != "" {
			return problem
		}
	}
	return "it goes on for ever"
}

// action is an action of the world, or what stands for it here.
func (r *randomWorld) action(i int, a action) func() string {
	s := r.Side[i]
	switch a.label {
	case "reads":
		return func() string {
			_, length := s.End.Peek()
			return r.read(i, 1+r.Uint64N(length))
		}
	case "commits":
		return func() string {
			s.Length = r.length()
			return r.commit(i)
		}
	}
	return func() string { return a.do(r.world, i) }
}
