package engine

import (
	"go/ast"
	"go/parser"
	"go/token"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/rnic/engine/path"
	"github.com/rdmashim/rdmashim/rnic/wire"
	"github.com/rdmashim/rdmashim/tests/must"
)

// A device without Stash has no extension, and one that has a Stash has none
// any more from the first packet on of a peer without: what it sends then has
// no reserved bit, and all goes on by the specification, also where packets are
// lost.
func TestPeerWithoutExtension(t *testing.T) {
	n := newPair(t, cfg{attr: func(_ int, a *Attr) { a.Room = jumboRoom }, edit: func(side int, c *Config) {
		if c.Paths = path.NewSet(0, nil); side == 0 {
			c.Stash = NewStash()
		}
	}})
	require.NotNil(t, n.a.qp.extension)
	require.Nil(t, n.b.qp.extension)
	rng := rand.New(rand.NewPCG(1, 2))
	met := false
	n.filter = func(from *host, p *wire.Packet) (copies int, delay Time) {
		if from == n.b {
			met = met || n.a.qp.extension == nil
		} else if met {
			require.False(t, p.Selective || p.Proven || p.PrivateMTU != 0, "%v", p)
		}
		if met && rng.IntN(20) == 0 {
			return 0, 0
		}
		return 1, Time(rng.IntN(2)) * Time(30*Microsecond) // some overtake others
	}
	for id := uint64(1); id <= 40; id += 2 {
		for side, h := range []*host{n.a, n.b} {
			w, r := n.write(id, 20_000), n.read(id+1, 20_000)
			if side == 1 {
				w.SGE, w.RemoteAddr, w.RKey = h.sge(300_000, 20_000), n.a.va(400_000), n.a.key()
				r.SGE, r.RemoteAddr, r.RKey = h.sge(500_000, 20_000), n.a.va(600_000), n.a.key()
			}
			n.post(h, w)
			n.post(h, r)
		}
		n.run(0)
		require.Nil(t, n.a.qp.extension)
	}
	for _, h := range []*host{n.a, n.b} {
		require.Len(t, h.wcs, 40)
		for _, c := range h.wcs {
			require.Zero(t, c.Status)
		}
		require.NotZero(t, h.qp.Counters().RetransmittedPkts)
		require.NotZero(t, h.qp.Counters().OutOfSeqRequest)
	}
}

// Nothing of an extension's files can run without an extension, as for a peer
// that has none (TestPeerWithoutExtension): all there belongs to an extension,
// or to a part of it, which other files do not name.
func TestSpecificationKnowsNoExtension(t *testing.T) {
	// These names make an extension, before a packet comes.
	entrances := []string{"extension", "newExtension", "reach", "Stash", "NewStash"}
	parts := map[string]bool{} // declared in the extension's files
	rest := map[string]*ast.File{}
	files := must.Get(filepath.Glob("*.go"))(t)
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		f := must.Get(parser.ParseFile(token.NewFileSet(), name, nil, 0))(t)
		switch name {
		case "extension.go", "private_mtu.go", "scoreboard.go", "stash.go":
		default:
			if !strings.HasPrefix(name, "selective_") {
				rest[name] = f
				continue
			}
		}
		for what := range f.Scope.Objects {
			parts[what] = !slices.Contains(entrances, what)
		}
		for _, d := range f.Decls {
			if fn, ok := d.(*ast.FuncDecl); ok && fn.Recv != nil {
				of := fn.Recv.List[0].Type
				if p, ok := of.(*ast.StarExpr); ok {
					of = p.X
				}
				require.NotEqual(t, "QP", of.(*ast.Ident).Name, "%s: %s", name, fn.Name)
			}
		}
	}
	require.Greater(t, len(parts), 20)
	for name, f := range rest {
		for _, x := range f.Unresolved { // names of other files
			require.False(t, parts[x.Name], "%s names %s of an extension", name, x.Name)
		}
	}
}
