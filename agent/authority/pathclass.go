package authority

import "github.com/continuo-fleet/continuo/score"

// adoptable are the classes of paths that are adopted without a word of the device's owner.
var adoptable = map[score.PathClass]bool{score.PathVersionable: true, score.PathUnknown: true}

// classes are the others, in words.
var classes = map[score.PathClass]string{
	score.PathSecret: "where keys or passwords are", score.PathRuntime: "what a program writes while it runs", score.PathBackup: "a copy that was left behind",
	score.PathCache: "a cache", score.PathUnsupported: "the kernel's, a package's or that of accounts",
}
