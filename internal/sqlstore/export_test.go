package sqlstore

// UserPages are the queries of [Users.List], each with what it searches an index for.
var UserPages = []struct{ Query, Search string }{
	{usersFromID, "(namespace=? AND user_id>?)"},
	{usersAfterID, "(namespace=? AND user_id>?)"},
	{usersByActivity, "(namespace=? AND (active_at,user_id)<(?,?))"},
}
