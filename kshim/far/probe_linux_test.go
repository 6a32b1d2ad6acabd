package far

import (
	"io"
	"math"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// TestProbe: both ways tell the rights of every page of a range.
func TestProbe(t *testing.T) {
	p := start(t)
	base := p.do("map 0 %d", 8*page)
	p.do("protect %d %d %d", base+2*page, page, unix.PROT_READ)
	p.do("protect %d %d %d", base+4*page, page, unix.PROT_NONE)
	p.do("unmap %d %d", base+6*page, page)
	// rw rw r- rw -- rw (none) rw
	ways := map[string]func(r *rest) error{
		"query": func(r *rest) error { return r.ask(p.far.query) },
		"maps":  func(r *rest) error { return r.scan(io.NewSectionReader(p.far.maps, 0, math.MaxInt64)) },
	}
	if _, err := p.far.query(base); err == syscall.ENOTTY {
		delete(ways, "query") // before Linux 6.11
	}
	for name, probe := range ways {
		for _, c := range []struct {
			from, n     uint64
			read, write bool
		}{
			{0, 1, true, true},
			{0, 2 * page, true, true},
			{0, 2*page + 1, true, false},
			{2*page - 1, 1, true, true},
			{2 * page, 1, true, false},
			{page, 3 * page, true, false},
			{3 * page, page, true, true},
			{3 * page, page + 1, false, false},
			{4*page + 7, 1, false, false},
			{5 * page, page, true, true},
			{5 * page, page + 1, false, false},
			{6 * page, 1, false, false},
			{7 * page, page, true, true},
			{5 * page, 3 * page, false, false},
			{7*page + 1, page - 1, true, true},
		} {
			read := probe(&rest{base + c.from, c.n, false})
			write := probe(&rest{base + c.from, c.n, true})
			require.Equal(t, []bool{c.read, c.write}, []bool{read == nil, write == nil}, "%s: %d bytes at %d", name, c.n, c.from)
		}
	}
}

// TestProbeMuch: a GiB of one mapping is one question, and touches no page.
func TestProbeMuch(t *testing.T) {
	p := start(t)
	base := p.do("map 0 %d", 1<<30)
	require.NoError(t, p.far.Probe(base, 1<<30, true))
	asked := 0
	err := (&rest{base, 1 << 30, true}).ask(func(addr uint64) (mapping, error) {
		asked++
		return p.far.query(addr)
	})
	if err != syscall.ENOTTY {
		require.NoError(t, err)
	}
	require.Equal(t, 1, asked)
}

// TestScan: a list that makes no sense is EFAULT.
func TestScan(t *testing.T) {
	for _, list := range []string{"", "x", "1000-2000", "1000-2000 r", "3000-1000 rw-p\n", "1000-2000 rw-p\n1000-1800 rw-p\n"} {
		require.ErrorIs(t, (&rest{0x1000, 0x1800, true}).scan(strings.NewReader(list)), syscall.EFAULT, list)
	}
}
