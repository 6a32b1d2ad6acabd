package mem

import (
	"math"
	"math/rand/v2"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/kshim/abi"
)

const allAccess = abi.AccessLocalWrite | abi.AccessRemoteWrite | abi.AccessRemoteRead | abi.AccessRemoteAtomic

func register(t testing.TB, tab *Table, n int, iova uint64, access abi.AccessFlags) *Region {
	t.Helper()
	return registerAt(t, Near, tab, n, iova, access)
}

func registerAt(t testing.TB, place func([]byte) Memory, tab *Table, n int, iova uint64, access abi.AccessFlags) *Region {
	t.Helper()
	r, err := tab.Register(1, place(make([]byte, n)), iova, access)
	require.NoError(t, err)
	return r
}

func TestRegisterRefuses(t *testing.T) {
	tab := NewTable([32]byte{1})
	for name, c := range map[string]struct {
		n      int
		iova   uint64
		access abi.AccessFlags
	}{
		"empty":                    {0, 0x1000, allAccess},
		"wraps":                    {2, math.MaxUint64, allAccess},
		"remote write, not local":  {8, 0x1000, abi.AccessRemoteWrite},
		"remote atomic, not local": {8, 0x1000, abi.AccessRemoteAtomic},
	} {
		_, err := tab.Register(1, Near(make([]byte, c.n)), c.iova, c.access)
		require.ErrorIs(t, err, syscall.EINVAL, name)
	}
	require.Zero(t, tab.Len())
	_, err := tab.Register(1, Near(make([]byte, 1)), math.MaxUint64, allAccess)
	require.NoError(t, err, "the last byte of the address space")
}

// The order of the checks: IBA 10.6.3.
func TestLookupErrors(t *testing.T) { nearAndFar(t, testLookupErrors) }

func testLookupErrors(t *testing.T, place func([]byte) Memory) {
	tab := NewTable([32]byte{7})
	r := registerAt(t, place, tab, 64, 0x1000, abi.AccessLocalWrite|abi.AccessRemoteRead)
	for name, c := range map[string]struct {
		pd   PD
		key  uint32
		addr uint64
		n    uint64
		need abi.AccessFlags
		want error
	}{
		"whole":                 {1, r.Key(), 0x1000, 64, abi.AccessRemoteRead, nil},
		"last byte":             {1, r.Key(), 0x103f, 1, 0, nil},
		"nothing, any key":      {9, 0xdead, 0, 0, allAccess, nil},
		"other key":             {1, r.Key() ^ 1, 0x1000, 1, 0, ErrKey},
		"same home, other key":  {1, r.Key() ^ 1<<31, 0x1000, 1, 0, ErrKey},
		"no key":                {1, 0, 0x1000, 1, 0, ErrKey},
		"domain before rights":  {2, r.Key(), 0x1000, 1, abi.AccessRemoteWrite, ErrPD},
		"rights before bounds":  {1, r.Key(), 0, 1, abi.AccessRemoteWrite, ErrAccess},
		"one below":             {1, r.Key(), 0xfff, 1, 0, ErrBounds},
		"one beyond":            {1, r.Key(), 0x1000, 65, 0, ErrBounds},
		"behind the end":        {1, r.Key(), 0x1040, 1, 0, ErrBounds},
		"address wraps":         {1, r.Key(), math.MaxUint64, 2, 0, ErrBounds},
		"length wraps":          {1, r.Key(), 0x1008, math.MaxUint64, 0, ErrBounds},
		"sum wraps to a good":   {1, r.Key(), 0x1020, math.MaxUint64 - 0x1f, 0, ErrBounds},
		"one of two rights":     {1, r.Key(), 0x1000, 1, abi.AccessRemoteRead | abi.AccessRemoteWrite, ErrAccess},
		"two rights, both here": {1, r.Key(), 0x1000, 1, abi.AccessRemoteRead | abi.AccessLocalWrite, nil},
	} {
		err := tab.Check(c.pd, c.key, c.addr, c.n, c.need)
		if c.want == nil {
			require.NoError(t, err, name)
		} else {
			require.Equal(t, c.want, err, name)
		}
	}
}

func TestStaleKeyFails(t *testing.T) {
	tab := NewTable([32]byte{3})
	seen := map[uint32]bool{}
	for range 4 * restKeys {
		r := register(t, tab, 8, 0x1000, allAccess)
		require.NotZero(t, r.Key())
		require.False(t, seen[r.Key()], "key %#x given twice", r.Key())
		seen[r.Key()] = true
		require.NoError(t, tab.Deregister(r.Key()))
		require.Equal(t, ErrKey, tab.Deregister(r.Key()))
	}
	for key := range seen {
		require.Equal(t, ErrKey, tab.Write(1, key, 0x1000, []byte{1}, true))
	}
	require.Zero(t, tab.Len())
	require.Equal(t, restKeys, tab.used)
}

// A key that is gone is not drawn again while it rests: the generator begins
// anew and so draws it first.
func TestKeyRests(t *testing.T) {
	seed := [32]byte{9}
	tab := NewTable(seed)
	key := register(t, tab, 8, 0, allAccess).Key()
	require.NoError(t, tab.Deregister(key))
	tab.random = rand.NewChaCha8(seed)
	require.NotEqual(t, key, register(t, tab, 8, 0, allAccess).Key())
	for range restKeys {
		require.NoError(t, tab.Deregister(register(t, tab, 8, 0, allAccess).Key()))
	}
	tab.random = rand.NewChaCha8(seed)
	require.Equal(t, key, register(t, tab, 8, 0, allAccess).Key(), "it has rested")
}

// Of many regions' keys none follows from another: neither do the bits repeat,
// nor are two neighbours near each other.
func TestKeysAreRandom(t *testing.T) {
	const n = 1 << 14
	tab := NewTable([32]byte{1})
	var ones [32]int
	near, before := 0, uint32(0)
	for range n {
		key := register(t, tab, 1, 0, allAccess).Key()
		for bit := range ones {
			ones[bit] += int(key >> bit & 1)
		}
		if key-before+1<<15 < 1<<16 { // odds of 2^-16
			near++
		}
		before = key
	}
	for bit, k := range ones {
		require.InDelta(t, n/2, k, 5*64, "bit %d: five standard deviations", bit)
	}
	require.Less(t, near, 8)
	require.NotEqual(t, register(t, NewTable([32]byte{1}), 1, 0, allAccess).Key(), register(t, NewTable([32]byte{2}), 1, 0, allAccess).Key())
}

// TestTableAgainstMap: through any inserts and removals the table has the
// entries of a map, stays half empty and gives memory back.
func TestTableAgainstMap(t *testing.T) {
	tab := NewTable([32]byte{4})
	rng := rand.New(rand.NewPCG(1, 2))
	model := map[uint32]*Region{}
	var keys, gone []uint32
	for step := range 40_000 {
		grow := step < 20_000
		if len(keys) == 0 || rng.IntN(4) > 0 == grow {
			r := register(t, tab, 1, uint64(step), allAccess)
			require.Nil(t, model[r.Key()])
			model[r.Key()] = r
			keys = append(keys, r.Key())
		} else {
			i := rng.IntN(len(keys))
			key := keys[i]
			keys[i] = keys[len(keys)-1]
			keys = keys[:len(keys)-1]
			require.NoError(t, tab.Deregister(key))
			delete(model, key)
			gone = append(gone, key)
		}
		if step%1000 == 0 {
			require.LessOrEqual(t, 2*tab.used, len(tab.slots))
			for key, r := range model {
				require.Same(t, r, tab.find(key))
			}
			for _, key := range gone {
				require.Nil(t, tab.find(key))
			}
			require.Equal(t, len(model), tab.Len())
		}
	}
	for key := range model {
		require.NoError(t, tab.Deregister(key))
	}
	require.LessOrEqual(t, len(tab.slots), 8*restKeys)
}

func TestInvalidate(t *testing.T) { nearAndFar(t, testInvalidate) }

func testInvalidate(t *testing.T, place func([]byte) Memory) {
	tab := NewTable([32]byte{1})
	r := registerAt(t, place, tab, 8, 0x1000, allAccess)
	require.Equal(t, ErrAccess, tab.Invalidate(1, 0, r.Key()))
	r.AllowInvalidate()
	require.Equal(t, ErrPD, tab.Invalidate(2, 0, r.Key()))
	require.Equal(t, ErrKey, tab.Invalidate(1, 0, r.Key()^1))
	require.NoError(t, tab.Invalidate(1, 0, r.Key()))
	require.Equal(t, ErrKey, tab.Check(1, r.Key(), 0x1000, 8, 0))
}
