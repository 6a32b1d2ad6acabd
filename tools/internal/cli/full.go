package cli

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// explainFull adds to an error of a full file system which variable of the
// environment names another place, if the file is a temporary one or one of the
// cache, and the command line does not name it. Compilers and apt-get run below
// the commands and have no errno, so the text is what counts.
func explainFull(err error, line []string) error {
	if err == nil || !strings.Contains(strings.ToLower(err.Error()), syscall.ENOSPC.Error()) {
		return err
	}
	cache, _ := os.UserCacheDir()
	for _, place := range []struct{ dir, variable string }{
		{cache, "XDG_CACHE_HOME"},
		{os.TempDir(), "TMPDIR"},
	} {
		below := filepath.Clean(place.dir) + "/"
		switch {
		case strings.Contains(err.Error(), "set "+place.variable), strings.Contains(err.Error(), "set XDG_RUNTIME_DIR"):
			return err // it says so
		case strings.Contains(strings.Join(line, " "), below):
		case place.dir != "" && strings.Contains(err.Error(), below):
			return fmt.Errorf("%w; make room there, or set %s to a directory with room", err, place.variable)
		}
	}
	return err
}
