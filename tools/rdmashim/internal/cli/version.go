package cli

// Version is the release that the sources belong to.
const Version = "0.1.0"
