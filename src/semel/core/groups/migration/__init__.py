"""Groups that change their protocol while they run, and members of both kinds in one."""
