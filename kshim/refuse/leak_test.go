package refuse

import (
	"testing"

	"github.com/rdmashim/rdmashim/tests/leak"
)

// TestMain: a test that leaves a goroutine or a descriptor behind fails the
// binary.
func TestMain(m *testing.M) { leak.Main(m) }
