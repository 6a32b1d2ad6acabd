package crc

import (
	"bytes"
	"hash/crc32"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

func noise(n int) []byte {
	b := make([]byte, n)
	_, _ = rand.NewChaCha8([32]byte{1}).Read(b)
	return b
}

// check compares with hash/crc32: p after head, in one, joined and copied.
func check(t *testing.T, head, p []byte) {
	t.Helper()
	before := crc32.ChecksumIEEE(head)
	want := crc32.Update(before, crc32.IEEETable, p)
	require.Equal(t, want, Update(before, p))
	guarded := bytes.Repeat([]byte{0xa5}, len(p)+128)
	s := Copy(guarded[64:], p)
	require.True(t, s.Known)
	require.True(t, bytes.Equal(p, guarded[64:64+len(p)]), "the copy")
	require.Equal(t, bytes.Repeat([]byte{0xa5}, 64), guarded[:64])
	require.Equal(t, bytes.Repeat([]byte{0xa5}, 64), guarded[64+len(p):])
	if len(p) < 1<<16 {
		require.Equal(t, want, Join(before, s, len(p)))
	}
}

// Every length up to several blocks, from every place in a cache line.
func TestLengths(t *testing.T) {
	t.Logf("folds: %t", Fast)
	b := noise(5 * block)
	for n := range 4*block + 3 {
		check(t, b[:n%40], b[n%67:][:n])
	}
	b = noise(1 << 17)
	for _, n := range []int{1 << 12, 8936, 61440, 65507, 1<<16 - 1, 1 << 16, 1 << 17} {
		check(t, b[:28], b[:n])
	}
}

// A processor that does not fold gives the same. On such a processor this is
// TestLengths once more.
func TestWithoutFolding(t *testing.T) {
	slow(t)
	TestLengths(t)
}

// The constants of the assembly are powers of x.
func TestConstants(t *testing.T) {
	power := func(n int) uint64 { // reflected, one bit to the left
		p := One
		for range n {
			p = Mul(p, One>>1)
		}
		return uint64(p) << 1
	}
	for d, want := range map[int][2]uint64{
		2048: {0x11542778a, 0x1322d1430}, 256: {0x0f1da05aa, 0x15a546366}, 128: {0x1751997d0, 0x0ccaa009e},
	} {
		require.Equal(t, want, [2]uint64{power(d + 32), power(d - 32)}, "%d", d)
	}
}

func TestPolynomials(t *testing.T) {
	require.Equal(t, One, Mul(One>>1, Inverse))
	r := rand.New(rand.NewPCG(1, 2))
	for range 1000 {
		a, b := r.Uint32(), r.Uint32()
		require.Equal(t, Mul(a, b), Mul(b, a))
		p := clmul(a, b)
		var want uint64
		for i := range 32 {
			want ^= uint64(b) << i & -uint64(a>>i&1)
		}
		require.Equal(t, want, p)
		require.Equal(t, Mul(Mul(a, b), Mul(1, One>>1)), word(p<<1), "a·b·x^32")
	}
}

func FuzzCRC(f *testing.F) {
	f.Add([]byte("head"), noise(1000))
	f.Add([]byte{}, noise(least))
	f.Fuzz(check)
}

func BenchmarkUpdate(b *testing.B) {
	p := noise(4096)
	b.SetBytes(4096)
	for b.Loop() {
		Update(0, p)
	}
}

func BenchmarkCopy(b *testing.B) {
	p, q := noise(4096), make([]byte, 4096)
	b.SetBytes(4096)
	for b.Loop() {
		Copy(q, p)
	}
}

func BenchmarkJoin(b *testing.B) {
	s := Copy(make([]byte, 1432), noise(1432))
	for b.Loop() {
		Join(7, s, 1432)
	}
}
