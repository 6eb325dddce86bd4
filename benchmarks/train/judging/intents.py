"""Describe the intents of CLINC150 and SNIPS as tools, so that a human utterance becomes a request for a tool."""

from typing import Any

_PLAIN = """
accept_reservations: Find out whether a restaurant takes reservations
account_blocked: Explain why a bank account is blocked or on hold
alarm: Set an alarm for a time
application_status: Check the status of a credit card application
apr: Look up the annual percentage rate of a credit card
are_you_a_bot: Tell whether this assistant is a person or a machine
balance: Show how much money is in a bank account
bill_balance: Show how much is owed on a bill
bill_due: Tell when a bill has to be paid
book_flight: Book a plane ticket
book_hotel: Reserve a hotel room
calculator: Compute arithmetic expressions
calendar: Show the events of a day from the calendar
calendar_update: Add or remove calendar events
calories: Look up the calories of a food
cancel: Abort the operation in progress
cancel_reservation: Cancel a restaurant reservation
car_rental: Rent a car
card_declined: Find out why a payment card was declined
carry_on: Look up an airline's rules for carry-on bags
change_accent: Switch the accent of the assistant's voice
change_ai_name: Give the assistant another name
change_language: Switch the language the assistant speaks
change_speed: Make the assistant talk faster or slower
change_user_name: Change what the assistant calls the user
change_volume: Turn the speaker's volume up or down
confirm_reservation: Confirm that a reservation exists
cook_time: Tell how long a dish must be cooked
credit_limit: Show the credit limit of a card
credit_limit_change: Ask to raise or change a credit limit
credit_score: Show the user's credit score
current_location: Tell where the user is right now
damaged_card: Report a payment card that is physically damaged
date: Tell the date of today or of a day from now
definition: Look up the meaning of a word
direct_deposit: Set up direct deposit of a salary
directions: Give directions to a place
distance: Measure how far or how long the way to a place is
do_you_have_pets: Chat about the assistant's pets
exchange_rate: Look up the rate between two currencies
expiration_date: Tell when a payment card expires
find_phone: Locate a lost phone
flight_status: Check whether a flight is on time
flip_coin: Flip a coin
food_last: Tell how long a food keeps before it spoils
freeze_account: Block a bank account so that nobody can use it
fun_fact: Tell an interesting fact
gas: Check how much fuel is left in the car
gas_type: Tell which kind of fuel a car needs
goodbye: Say goodbye
greeting: Greet the user
how_busy: Tell how crowded a restaurant is or how long one waits
how_old_are_you: Tell the age of the assistant
improve_credit_score: Give advice on how to raise a credit score
income: Show the user's salary or earnings
ingredient_substitution: Suggest what can replace an ingredient in cooking
ingredients_list: List the ingredients of a dish
insurance: Show what an insurance plan covers
insurance_change: Change to another insurance plan
interest_rate: Look up the interest rate of an account or loan
international_fees: Look up fees for using a card abroad
international_visa: Tell whether a visa is needed to enter a country
jump_start: Explain how to jump start a car battery
last_maintenance: Tell when a car was last serviced
lost_luggage: Report or track luggage that an airline lost
make_call: Phone a contact
maybe: Answer that the user is undecided
meal_suggestion: Suggest what to cook or eat
meaning_of_life: Discuss the meaning of life
measurement_conversion: Convert between units of measurement
meeting_schedule: List the meetings planned for a day
min_payment: Show the minimum payment due on a bill
mpg: Tell the fuel economy of a car
new_card: Apply for a new credit card
next_holiday: Tell when the next public holiday is
next_song: Skip to the next song
no: Answer no
nutrition_info: Look up the nutrients of a food
oil_change_how: Explain how to change a car's oil
oil_change_when: Tell when a car's oil should be changed
order: Order a product from a shop
order_checks: Order new bank checks
order_status: Track a package or an order
pay_bill: Pay a bill
payday: Tell when the next salary arrives
pin_change: Change the PIN of a bank account or card
play_music: Play a song, an artist or a playlist
plug_type: Tell which power plug a country uses
pto_balance: Show how many vacation days are left
pto_request: Request days off from work
pto_request_status: Check whether requested vacation was approved
pto_used: Show how many vacation days were taken
recipe: Find a recipe for a dish
redeem_rewards: Redeem the reward points of a card
reminder: List the reminders that are set
reminder_update: Create or change a reminder
repeat: Say the last answer again
replacement_card_duration: Tell how long a replacement card takes to arrive
report_fraud: Report a fraudulent transaction
report_lost_card: Report that a payment card was lost or stolen
reset_settings: Reset the device to factory settings
restaurant_reservation: Reserve a table at a restaurant
restaurant_reviews: Read reviews of a restaurant
restaurant_suggestion: Recommend places to eat
rewards_balance: Show the reward points collected on a card
roll_dice: Roll dice
rollover_401k: Move a 401k retirement account to another provider
routing: Look up the routing number of a bank
schedule_maintenance: Make an appointment for car maintenance
schedule_meeting: Schedule a meeting with people or book a room
share_location: Send the user's location to a contact
shopping_list: Read the shopping list
shopping_list_update: Add items to or remove them from the shopping list
smart_home: Control lights, locks and other smart home devices
spelling: Spell a word
spending_history: Show how much was spent on something
sync_device: Connect or disconnect a phone with the device
taxes: Show the user's state or federal taxes
tell_joke: Tell a joke
text: Send a text message to a contact
thank_you: Accept thanks
time: Tell the time in a place
timer: Start or stop a countdown timer
timezone: Tell the time zone of a place
tire_change: Explain how to change a tire
tire_pressure: Check the air pressure of the tires
todo_list: Read the to-do list
todo_list_update: Add tasks to or remove them from the to-do list
traffic: Report the traffic on a route
transactions: List recent transactions of an account
transfer: Transfer money between accounts
translate: Translate words into another language
travel_alert: Look up safety warnings for a travel destination
travel_notification: Tell the bank that the user will travel abroad
travel_suggestion: Suggest sights and activities at a destination
uber: Book a ride with a driver
update_playlist: Add songs to a playlist
user_name: Tell the name stored for the user
vaccines: Tell which vaccines a journey needs
w2: Get the user's W-2 tax form
weather: Get the weather forecast for a place
what_are_your_hobbies: Chat about the assistant's hobbies
what_can_i_ask_you: List what the assistant can do
what_is_your_name: Tell the assistant's name
what_song: Identify the song that is playing
where_are_you_from: Tell where the assistant comes from
whisper_mode: Make the assistant whisper
who_do_you_work_for: Tell whom the assistant works for
who_made_you: Tell who created the assistant
yes: Answer yes
"""

INTENTS = dict(line.split(": ", 1) for line in _PLAIN.strip().splitlines())
"""The action of each intent of CLINC150, by name."""

SNIPS: dict[str, dict[str, Any]] = {
    "AddToPlaylist": {
        "names": ["add_to_playlist", "playlist_add_item", "saveSongToList"],
        "descriptions": [
            "Add a song, album or artist to one of the user's playlists",
            "Put music on a playlist",
            "Appends an item to a named list of music",
        ],
        "beside": [
            "remove_from_playlist: Remove a song from a playlist",
            "create_playlist: Create a new empty playlist",
            "list_playlists: List the playlists of a user",
            "share_playlist: Send the link of a playlist to a friend",
        ],
    },
    "BookRestaurant": {
        "names": ["book_restaurant", "reserveTable", "create_dining_reservation"],
        "descriptions": [
            "Book a table at a restaurant for a party",
            "Make a reservation to eat out",
            "Reserve seats at a place that serves food",
        ],
        "beside": [
            "cancel_booking: Cancel a restaurant reservation",
            "restaurant_reviews: Read what guests say of a restaurant",
            "order_delivery: Order food to be delivered to the door",
            "book_hotel_room: Reserve a room in a hotel",
        ],
    },
    "GetWeather": {
        "names": ["get_weather", "weatherForecast", "forecast.lookup"],
        "descriptions": [
            "Get the weather forecast for a place and time",
            "Tell what the weather will be like",
            "Returns conditions and temperature for a location",
        ],
        "beside": [
            "get_air_quality: Get the air pollution index of a city",
            "get_sunset_time: Tell when the sun rises and sets",
            "get_sea_tides: Get high and low tide for a coast",
            "get_earthquakes: List recent earthquakes near a place",
        ],
    },
    "PlayMusic": {
        "names": ["play_music", "player.start", "playTrack"],
        "descriptions": [
            "Play music by artist, track, album, genre or year on a streaming service",
            "Start playing songs",
            "Streams a piece of music that matches what is asked for",
        ],
        "beside": [
            "get_lyrics: Get the words of a song",
            "set_volume: Set the loudness of the speaker",
            "buy_album: Buy an album in the music shop",
            "search_concerts: Find concerts of an artist",
        ],
    },
    "RateBook": {
        "names": ["rate_book", "submitRating", "give_stars"],
        "descriptions": [
            "Rate a book, novel, essay or series with points or stars",
            "Save the user's rating of something they read",
            "Gives a work a score out of a maximum",
        ],
        "beside": [
            "get_rating: Show the average rating of a book",
            "write_review: Publish a text review of a book",
            "buy_book: Order a book from a shop",
            "borrow_book: Borrow a book from the library",
        ],
    },
    "SearchCreativeWork": {
        "names": ["search_creative_work", "findWork", "media.lookup"],
        "descriptions": [
            "Find a creative work such as a book, song, game, show or picture by its title",
            "Search for a title among films, albums, games and books",
            "Looks up a published work",
        ],
        "beside": [
            "get_movie_times: Get showtimes of a film at cinemas nearby",
            "rent_movie: Rent a film online",
            "get_author_biography: Tell about the life of an author",
            "recommend_similar: Recommend works similar to one the user likes",
        ],
    },
    "SearchScreeningEvent": {
        "names": ["search_screening_event", "movie_showtimes", "findScreenings"],
        "descriptions": [
            "Find when and where films are shown in cinemas",
            "Get the movie schedule of theatres near a place",
            "Lists screenings by film, cinema and time",
        ],
        "beside": [
            "buy_movie_ticket: Buy tickets for a film",
            "get_movie_plot: Tell the story of a film",
            "find_theatre_plays: Find plays on stage in a town",
            "stream_movie: Watch a film online at home",
        ],
    },
}
"""SNIPS's intents: alternative names, the action, and other tools that do not fit its utterances."""

SLOTS: dict[str, tuple[list[str], str]] = {
    "music_item": (["music_item", "kind", "item_type"], "What it is: song, album, track, tune ..."),
    "playlist": (["playlist", "playlist_name", "target_list"], "Name of the playlist"),
    "artist": (["artist", "performer", "musician"], "The artist or band"),
    "playlist_owner": (["playlist_owner", "owner", "whose"], "Whose playlist it is"),
    "entity_name": (["entity_name", "title", "name"], "Title of the song, album or artist"),
    "restaurant_name": (["restaurant_name", "venue", "place_name"], "Name of the restaurant"),
    "restaurant_type": (["restaurant_type", "venue_type", "kind_of_place"], "Kind of place, such as bar or bistro"),
    "state": (["state", "region", "province"], "State or region"),
    "timeRange": (["time_range", "when", "date", "time"], "When: a date, a time or a period"),
    "spatial_relation": (["spatial_relation", "nearness", "proximity"], "How near it should be"),
    "poi": (["poi", "near_place", "landmark"], "A place or person that it should be close to"),
    "served_dish": (["served_dish", "dish", "food"], "A dish that should be served"),
    "party_size_number": (["party_size", "people", "number_of_guests"], "How many people"),
    "country": (["country", "nation", "country_name"], "The country"),
    "city": (["city", "town", "location"], "City or town"),
    "sort": (["sort", "order_by", "quality"], "How to rank them, such as best, popular, newest"),
    "cuisine": (["cuisine", "food_style", "kitchen"], "Style of cooking"),
    "facility": (["facility", "amenity", "feature"], "What the place should have"),
    "party_size_description": (["party_description", "guests", "with_whom"], "Who comes along"),
    "geographic_poi": (["geographic_poi", "park", "site"], "A park, a mountain or another geographic place"),
    "condition_description": (["condition", "weather_condition", "phenomenon"], "Weather condition, such as rain"),
    "current_location": (["current_location", "here", "use_my_position"], "Words for the place where the user is"),
    "condition_temperature": (["temperature", "warmth", "condition_temperature"], "How warm or cold it is"),
    "track": (["track", "song", "song_title"], "Title of the song"),
    "service": (["service", "platform", "player"], "Streaming service"),
    "year": (["year", "decade", "period"], "Year or decade"),
    "album": (["album", "record", "album_title"], "Title of the album"),
    "genre": (["genre", "style", "music_style"], "Style of the music"),
    "object_name": (["object_name", "title", "name"], "Title of the work"),
    "rating_value": (["rating_value", "score", "stars"], "How many points are given"),
    "best_rating": (["best_rating", "maximum", "out_of"], "The highest rating possible"),
    "rating_unit": (["rating_unit", "unit", "points_name"], "What is counted: stars or points"),
    "object_select": (["object_select", "which_one", "reference"], "Which one is meant: this, current, last ..."),
    "object_type": (["object_type", "type", "work_type"], "Kind of work, such as book, film or game"),
    "object_part_of_series_type": (["series_part", "part_of", "series_type"], "Kind of series it belongs to"),
    "location_name": (["location_name", "cinema", "theater"], "Name of the cinema"),
    "movie_name": (["movie_name", "film", "title"], "Title of the film"),
    "object_location_type": (["location_type", "venue_kind", "place_type"], "Kind of place, such as cinema"),
    "movie_type": (["movie_type", "film_kind", "category"], "Kind of film"),
}
"""SNIPS's slots: possible names of the parameter, and its description."""
