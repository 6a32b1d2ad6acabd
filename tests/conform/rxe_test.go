//go:build linux && guest

package conform

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestRXE(t *testing.T) {
	if !haveRXE() {
		t.Fatal("no rxe0 here: these tests run in a guest, see guest_test.go")
	}
	sys, err := kernelRXE()
	require.NoError(t, err)
	runSuite(t, sys)
}
