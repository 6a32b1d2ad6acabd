package dump

import (
	"testing"

	"github.com/spf13/cobra"

	"github.com/rdmashim/rdmashim/tools/internal/cli/clitest"
)

// root is the module's directory.
const root = "../../.."

func TestMain(m *testing.M) {
	clitest.Main(m, func() []*cobra.Command { return []*cobra.Command{Command()} })
}
