package core

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/tests/amount"
)

// TestAllocations: once a connection has its memory, data costs none.
func TestAllocations(t *testing.T) {
	if amount.Race {
		t.Skip("the race detector allocates")
	}
	p := ready(t, nil)
	id := p.open(p.a, true)
	data := make([]byte, 100_000)
	buf := make([]byte, 1<<16)
	p.split = 1000
	move := func() {
		if err := p.a.Write(id, data, false); err != nil {
			t.Fatal(err)
		}
		for total := 0; total < len(data); {
			p.run()
			n, err := p.b.Read(id, buf)
			if err != nil {
				t.Fatal(err)
			}
			total += n
			p.a.Events()
			p.b.Events()
		}
	}
	move()
	require.Zero(t, testing.AllocsPerRun(20, move))
}

// TestIdleStreams: a stream that waits costs no buffer.
func TestIdleStreams(t *testing.T) {
	p := ready(t, nil)
	for range 50 {
		id := p.open(p.a, true)
		p.write(p.a, id, "x", false)
		p.run()
		p.expect(p.b, id, "x", nil)
	}
	for _, s := range p.b.streams {
		require.Nil(t, s.recv.unread.head)
	}
	require.Equal(t, 1, p.b.blocks.count)
}
