// Package privatefile makes the files of captures and traces, which hold
// programs' data: for one user's eyes, and never in a file, or through a
// symbolic link, that another user may have made. It also makes and checks the
// directories in which one user's programs meet, by sockets and other files.
//
// Open hands on to os.OpenFile. A file of the user's that exists keeps its
// mode. A directory that exists is refused unless it is the user's alone.
package privatefile
