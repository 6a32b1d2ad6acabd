package session

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestPacesAreBounded: names that strangers make up take bounded memory, and
// not the pace from methods that come later.
func TestPacesAreBounded(t *testing.T) {
	var p paces
	for i := range 3 * maxPaces {
		p.of(fmt.Sprint(i))
		require.LessOrEqual(t, len(p.by), maxPaces)
	}
	for range briefRuns {
		p.of("honest").countRun(0)
	}
	require.True(t, p.of("honest").brief())
}
