package suite

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestHostState: the state is a line, which has a load where the system tells.
func TestHostState(t *testing.T) {
	require.Regexp(t, `^\d+ processors(, \d+\.\d % of their time stolen)?(, load \d+\.\d+)?$`, hostState(hostTime{}))
}
