"""Its presence puts this folder on the import path of all tests below it (builders such as `cause_cases`)."""
