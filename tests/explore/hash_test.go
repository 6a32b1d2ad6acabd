package explore

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// flags is a model of bits in a row, in several kinds of fields.
type flags struct {
	a, b, c bool
	n       []int8
	m       map[int]bool
}

func (flags) Steps() []Step { return nil }
func (flags) Stuck() string { return "" }

// States that differ in any field are told apart.
func TestHashTellsApart(t *testing.T) {
	met := map[uint64]flags{}
	for bits := range 1 << 7 {
		at := func(i int) bool { return bits>>i&1 != 0 }
		m := flags{a: at(0), b: at(1), c: at(2), m: map[int]bool{1: at(3), 2: at(4)}, n: make([]int8, bits>>5)}
		h := hash(m)
		require.NotContains(t, met, h, "%+v and %+v", m, met[h])
		met[h] = m
	}
}
