package script

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestParseErrors(t *testing.T) {
	for _, s := range []string{"----\n", "post a write\n\n----\n", "post a write\n"} {
		_, err := parse(s)
		require.Error(t, err, "%q", s)
	}
}
